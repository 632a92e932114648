package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// ErrResolve: Config.Resolve has failed, or has not returned in time. errors.Is finds it in
// Down.Err, along with Resolve's own error.
var ErrResolve = errors.New("the address is not known")

// beginAttempt begins the next attempt: it determines the address to dial, and gets in line for a
// turn.
func (l *link) beginAttempt(ctx actor.Context) {
	l.leaveQueue()
	switch {
	case l.isPassive():
		l.enterState(LinkWaiting)
	case l.cfg.Resolve != nil:
		l.enterState(LinkResolving)
		l.askResolve()
		l.timer = rdma.After(ctx, l.resolveTimeout(), &unresolved{l.cfg.Dial.Addr, l.generation})
	default:
		l.queueDial(ctx, l.cfg.Dial.Addr)
	}
}

// isPassive reports whether it has no address to dial.
func (l *link) isPassive() bool { return l.cfg.Peers != nil && l.cfg.Dial.Addr == "" }

// queueDial gets in line for a dial to an address.
func (l *link) queueDial(ctx actor.Context, addr string) {
	if l.ticket == nil || l.at != addr {
		l.leaveQueue()
		self, root := ctx.Self(), ctx.ActorSystem().Root
		l.at = addr
		l.ticket = l.cfg.Limiter.Ticket(self, addr, func() { root.Send(self, &turn{}) })
	}
	l.dialInTurn(ctx)
}

// The messages of a link to itself about Resolve.
type (
	// resolved is Resolve's answer.
	resolved struct {
		name, at string
		err      error
	}
	// unresolved ends an attempt's wait for Resolve.
	unresolved struct {
		name       string
		generation uint64 // the last one before the attempt
	}
)

func (l *link) resolveTimeout() time.Duration {
	if l.cfg.Dial.Timeout > 0 {
		return l.cfg.Dial.Timeout
	}
	return defaultResolve
}

// askResolve calls Resolve off the loop, unless an earlier call has not returned.
func (l *link) askResolve() {
	if l.asking != nil {
		return
	}
	c, cancel := context.WithTimeout(context.Background(), l.resolveTimeout())
	l.asking = cancel
	resolve, name, self, root, scheduler := l.cfg.Resolve, l.cfg.Dial.Addr, l.self, l.rt.System().Root, l.rt.Scheduler()
	scheduler.Go(func() {
		m := &resolved{name: name, err: errors.New("it called runtime.Goexit")}
		defer func() {
			if r := recover(); r != nil {
				m.err = fmt.Errorf("it has panicked: %v", r)
			}
			cancel()
			root.Send(self, m)
		}()
		m.at, m.err = resolve(c, name)
		scheduler.Resume()
	})
}

// handleResolved handles Resolve's answer. An answer for another name than the present one is of no
// use.
func (l *link) handleResolved(ctx actor.Context, m *resolved) {
	l.asking = nil
	waits := l.state == LinkResolving
	switch {
	case m.name != l.cfg.Dial.Addr:
		if waits {
			l.askResolve()
		}
	case m.err == nil:
		l.home = parseHost(m.at)
		if waits {
			l.queueDial(ctx, m.at)
		}
	case waits:
		l.failResolve(ctx, m.err)
	}
}

// failResolve ends an attempt that has no address to dial.
func (l *link) failResolve(ctx actor.Context, err error) {
	l.stopTimer()
	l.generation++
	l.failGeneration(ctx, fmt.Errorf("%s: %w: %w", l.cfg.Dial.Addr, ErrResolve, err), nil)
}

// changeAddress handles a new address of the peer, from the owner.
func (l *link) changeAddress(ctx actor.Context, m *Address) {
	switch m.Addr {
	case "":
		l.refuseMessage(message{}, fmt.Errorf("an empty address: %w", unix.EINVAL))
		return
	case l.cfg.Dial.Addr:
		return
	}
	l.cfg.Dial.Addr, l.home = m.Addr, netip.Addr{}
	if l.cfg.Resolve == nil {
		l.home = parseHost(m.Addr)
	}
	l.publishInfo()
	switch l.state {
	case LinkWaiting, LinkResolving, LinkQueueing:
		l.beginAttempt(ctx)
	case LinkUp, LinkAccepting:
		if l.cfg.Resolve != nil {
			l.askResolve() // so that a request from there is recognized
		}
	}
}

// giveUp returns how long the actor continues without a connection; 0: forever.
func (l *link) giveUp() time.Duration {
	if l.cfg.GiveUp <= 0 && l.isPassive() {
		return defaultGiveUp
	}
	return max(l.cfg.GiveUp, 0)
}
