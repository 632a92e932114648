package rdmanet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/internal/relisten"
)

// Listener is a net.Listener for streams. Any goroutine except a loop's may call its methods.
type Listener struct {
	waiter

	own    *relisten.Listener
	addr   *net.TCPAddr
	cfg    Config
	places fairshare.Shares[netip.Addr] // of those that were admitted and not yet accepted
	ready  []*Conn
}

var _ net.Listener = (*Listener)(nil)

// Listen listens on addr, "host:port". Without a host it listens on all devices; port 0 chooses a
// free one. ctx bounds the look-up of the name and the attempt to listen, not the listener. The
// net.Listener is a *Listener. The error is a *net.OpError; errors.Is finds the errno in it. After
// a reset of its device it listens again. If it cannot for five minutes, Accept returns an error.
func Listen(ctx context.Context, rt *rdma.Runtime, addr string, cfg ...Config) (net.Listener, error) {
	if ctx.Err() != nil {
		return nil, setupError("listen", addr, withContextErr(ctx, context.Cause(ctx)))
	}
	l := &Listener{cfg: optional.Value(cfg).withDefaults()}
	l.rt, l.wake = rt, newWake()
	handler := actor.PropsFromProducer(func() actor.Actor { return &owner{from: l} })
	own, err := relisten.Listen(ctx, rt, relisten.Config{
		Name: "rdmanet", Addr: addr, GiveUp: relisten.GiveUp,
		ID:    rdma.IDConfig{Handler: handler, MaxMessage: l.cfg.MaxMessage, Credits: l.cfg.Credits, Stream: true},
		Ended: func(err error) { l.failWait(&failure{unix.ENODEV, err}) },
	})
	if err != nil {
		return nil, setupError("listen", addr, withContextErr(ctx, err))
	}
	l.own, l.addr = own, netAddr(own.Addr())
	return l, nil
}

// admitPeer counts a request as a connection that waits for Accept. If it is not admitted, refusal
// is the reason. A peer that does not complete its connection occupies a place until that fails, so
// no single address may take all places.
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

// queueAccepted queues an established connection for Accept. After the listener's end it discards
// the connection, as Accept may not be called again.
func (l *Listener) queueAccepted(c *Conn) (woke bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.err != nil {
		c.closeUnused()
		return false
	}
	l.ready = append(l.ready, c)
	return l.signalLocked()
}

// Accept waits for a connection, and returns a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	l.turn.Lock(l.rt.Scheduler())
	defer l.turn.Unlock(l.rt.Scheduler())
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, l.opError("accept", net.ErrClosed)
		case l.expired:
			return nil, l.opError("accept", os.ErrDeadlineExceeded)
		case len(l.ready) > 0:
			c := l.ready[0]
			l.ready[0] = nil
			l.ready = l.ready[1:]
			l.places.Free(c.from)
			return c, nil
		case l.err != nil:
			return nil, l.opError("accept", l.err)
		}
		if err := l.waitLocked(); err != nil {
			return nil, l.opError("accept", err)
		}
	}
}

func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: l.addr, Err: err}
}

// closePatience is how long Close waits for the address to be free again.
const closePatience = time.Second

// Close makes Accept return net.ErrClosed, and ends the connections that were not accepted.
// Accepted ones go on. When Close returns the address is free, unless the device takes longer than
// a second. On a loop's goroutine Close does not wait for that.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.opError("close", net.ErrClosed)
	}
	l.closeLocked()
	left := l.ready
	l.ready = nil
	l.mu.Unlock()
	for _, c := range left {
		c.closeUnused()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	l.own.Close(ctx)
	return nil
}

// Addr returns the address that the listener is bound to, a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return l.addr }

// SetDeadline sets the time until which Accept may block, as Conn.SetReadDeadline does for Read.
func (l *Listener) SetDeadline(t time.Time) error {
	if !l.setDeadline(t) {
		return l.opError("set", net.ErrClosed)
	}
	return nil
}
