package slots

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/internal/relisten"
)

// Listener accepts connections with slots. Any goroutine except a loop's may call its methods.
type Listener struct {
	rt   *rdma.Runtime
	cfg  Config
	own  *relisten.Listener
	addr rdma.Addr

	mu     sync.Mutex
	gate   gate
	places fairshare.Shares[netip.Addr] // of those that were admitted and not yet accepted
	ready  []*Conn
	closed bool
	err    error // the cause of the listener's end
}

// Listen listens on addr, "host:port". Port 0 chooses a free one. After a reset of its device it
// listens again. If it cannot for five minutes, Accept returns an error. ctx bounds the look-up of
// the name and the attempt to listen, not the listener. Any goroutine except a loop's.
func Listen(ctx context.Context, rt *rdma.Runtime, addr string, config ...Config) (*Listener, error) {
	cfg, err := optional.Value(config).withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Listener{rt: rt, cfg: cfg, gate: newGate()}
	id := cfg.idConfig()
	id.Handler = actor.PropsFromProducer(func() actor.Actor { return &owner{from: l} })
	l.own, err = relisten.Listen(ctx, rt, relisten.Config{
		Name: "slots", Addr: addr, ID: id, GiveUp: relisten.GiveUp, Ended: l.recordEnd,
	})
	if err != nil {
		return nil, fmt.Errorf("slots: listen on %s: %w", addr, err)
	}
	l.addr = l.own.Addr()
	return l, nil
}

// recordEnd records the listener's end.
func (l *Listener) recordEnd(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = &LostError{err}
	l.gate.wakeOne()
}

// admitPeer counts a request as a connection that waits for Accept. If it is not admitted, refusal
// is the reason. A peer that does not send its ring keeps a place for setupTime, so no single
// address may take all places.
func (l *Listener) admitPeer(from netip.Addr) (refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return "the listener has been closed"
	case !l.places.May(from, l.cfg.Backlog):
		return fmt.Sprintf("%d connections wait to be accepted, %d of them from %v", l.places.Total(), l.places.Has(from), from)
	}
	l.places.Take(from)
	return ""
}

// removeFailed records that an admitted connection has failed.
func (l *Listener) removeFailed(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places.Free(from)
}

// queueAccepted queues a ready connection for Accept. After the listener's end it closes the
// connection, as Accept may not be called again.
func (l *Listener) queueAccepted(c *Conn) (woke bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.err != nil {
		_ = c.Close()
		return false
	}
	l.ready = append(l.ready, c)
	return l.gate.wakeOne()
}

// Accept waits for a connection on which both sides have their slots. The error is ErrClosed, the
// cause of the listener's end, or that ctx has ended.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.closed:
			l.gate.wakeOne()
			return nil, ErrClosed
		case len(l.ready) > 0:
			c := l.ready[0]
			l.ready[0] = nil
			l.ready = l.ready[1:]
			l.places.Free(c.peer.Source())
			if len(l.ready) > 0 {
				l.gate.wakeOne()
			}
			return c, nil
		case l.err != nil:
			l.gate.wakeOne()
			return nil, l.err
		}
		if err := l.gate.wait(ctx, l.rt, &l.mu); err != nil {
			if len(l.ready) > 0 {
				l.gate.wakeOne() // the token may have been for this caller, which gives up
			}
			return nil, err
		}
	}
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() rdma.Addr { return l.addr }

// closePatience is how long Close waits for the address to be free again.
const closePatience = time.Second

// Close makes Accept return ErrClosed, and closes the connections that were not accepted. Accepted
// ones go on. When Close returns the address is free, unless the device takes longer than a second.
// On a loop's goroutine Close does not wait for that.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	left := l.ready
	l.ready = nil
	l.gate.wakeOne()
	l.mu.Unlock()
	for _, c := range left {
		_ = c.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	l.own.Close(ctx)
	return nil
}
