// Package relisten keeps a listener at its address. If the listening identifier ends, for example
// because its device is reset, a Listener listens again at the same address, with growing pauses,
// until it succeeds or gives up. So listeners of rpc, rdmanet, slots and remoting survive a reset of
// the network card, as TCP's do.
package relisten

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/eventloop"
)

// GiveUp is how long servers try to listen again: longer than a device's reset, a reload of its
// driver or the migration of a virtual machine takes.
const GiveUp = 5 * time.Minute

// longestPause is the default of Config.Backoff.Most.
const longestPause = 5 * time.Second

// Config configures a Listener.
type Config struct {
	Name      string             // prefix of its actor's name
	Addr      string             // "host:port"; port 0 is one that is free
	ID        rdma.IDConfig      // of each listening identifier
	Backoff   reconnect.Backoff  // the pauses, without jitter
	GiveUp    time.Duration      // ends it after so long without listening; 0: never
	Listening func(at rdma.Addr) // called on its loop before the first request; nil: nothing is
	// Ended is called on its loop when it no longer accepts connections: err is nil after Close,
	// and otherwise rdma.ErrShutdown, its loop's *eventloop.GoexitError, the *rdma.RemovedError
	// of a lost driver, or the reason why it gave up. It is not called if Listen fails, nor after
	// Stop.
	Ended func(err error)
}

// Listener is an actor on a loop that owns the listening identifier, one after the other.
type Listener struct {
	rt   *rdma.Runtime
	cfg  Config
	pid  *actor.PID
	gone chan struct{}
	addr rdma.Addr // set by Listen

	local   rdma.Local
	id      *actor.PID   // nil: none
	caller  *actor.PID   // the waiting call of Listen; nil: answered
	closers []*actor.PID // the waiting calls of Close
	closing bool
	heard   bool   // has listened before
	up      bool   // listens now
	left    func() // lets the runtime's Shutdown go on

	at    rdma.Addr // where it listened first, and listens again
	since time.Time // up or down
	tries int       // pauses since it was up for Backoff.Stable
	cause error     // why it no longer listens
}

// The messages of a listener to itself.
type (
	attempt  struct{} // a pause is over
	shutdown struct{} // the runtime's has begun
)

// Listen waits until it listens. A Failure is returned as the error. On a loop the error is
// eventloop.ErrOnLoop.
func Listen(ctx context.Context, rt *rdma.Runtime, cfg Config) (*Listener, error) {
	if cfg.Backoff.Most <= 0 {
		cfg.Backoff.Most = longestPause
	}
	cfg.Backoff = cfg.Backoff.WithDefaults()
	l := &Listener{rt: rt, cfg: cfg, gone: make(chan struct{})}
	root := rt.System().Root
	pid := root.SpawnPrefix(actor.PropsFromProducer(func() actor.Actor { return l }, rt.OnLoop()), cfg.Name)
	ev, err := rdma.Ask[*rdma.Listening](ctx, rt, pid, &rdma.Serve{Addr: cfg.Addr})
	if err != nil {
		root.Stop(pid)
		return nil, err
	}
	l.pid, l.addr = pid, ev.Local
	return l, nil
}

// Addr returns the address at which it listens.
func (l *Listener) Addr() rdma.Addr { return l.addr }

// Close ends it, and waits until the address is free again or ctx has ended. On a loop it does not
// wait.
func (l *Listener) Close(ctx context.Context) {
	if eventloop.MayWait() != nil {
		l.rt.System().Root.Send(l.pid, &rdma.DestroyID{})
		return
	}
	// ENOENT: it has ended already
	_, _ = rdma.Ask[*rdma.Closed](ctx, l.rt, l.pid, &rdma.DestroyID{})
}

// Stop ends it without waiting for the address.
func (l *Listener) Stop() { l.rt.System().Root.Stop(l.pid) }

// Gone returns a channel that is closed when the actor has stopped.
func (l *Listener) Gone() <-chan struct{} { return l.gone }

// Receive implements actor.Actor.
func (l *Listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		l.local = rdma.LocalOf(ctx)
		l.left = l.local.OnShutdown(&shutdown{})
	case *rdma.Serve:
		l.caller = ctx.Sender()
		l.createID(ctx)
		ctx.Request(l.id, m)
	case *attempt:
		l.createID(ctx)
		ctx.Request(l.id, &rdma.Serve{Addr: l.at.String()})
	case *shutdown:
		if l.heard && l.id == nil { // in a pause; else Closed follows
			l.answerAndStop(ctx, l.local.Err())
		}
	case *rdma.Listening:
		l.handleListening(ctx, m)
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Reject{}) // neither a Route nor a Handler has taken it
	case *rdma.DestroyID:
		l.beginClose(ctx)
	case *rdma.Closed:
		l.handleClosed(ctx, m)
	case rdma.Failure: // Closed follows
		l.answerListen(ctx, m)
	case *actor.Stopped:
		l.left()
		close(l.gone)
	}
}

func (l *Listener) createID(ctx actor.Context) { l.id = l.rt.CreateID(ctx.Self(), l.cfg.ID) }

// answerListen answers Listen, once.
func (l *Listener) answerListen(ctx actor.Context, ev any) {
	if l.caller != nil {
		ctx.Send(l.caller, ev)
		l.caller = nil
	}
}

func (l *Listener) handleListening(ctx actor.Context, m *rdma.Listening) {
	now := l.local.Now()
	if !l.heard {
		l.heard, l.at = true, m.Local
		if l.cfg.Listening != nil {
			l.cfg.Listening(m.Local)
		}
	} else {
		l.rt.Logger().Info("rdma: the listener listens again", "local", l.at, "pid", ctx.Self().Id, "for", now.Sub(l.since))
	}
	l.up, l.since = true, now
	l.answerListen(ctx, m)
}

// beginClose begins the end that Close has asked for.
func (l *Listener) beginClose(ctx actor.Context) {
	l.closing = true
	if from := ctx.Sender(); from != nil {
		l.closers = append(l.closers, from)
	}
	if l.id == nil { // in a pause
		l.answerAndStop(ctx, nil)
		return
	}
	ctx.Request(l.id, &rdma.DestroyID{})
}

// handleClosed handles the end of the identifier.
func (l *Listener) handleClosed(ctx actor.Context, m *rdma.Closed) {
	l.id = nil
	switch over := l.local.Err(); {
	case l.closing:
		l.answerAndStop(ctx, nil)
	case !l.heard, isPermanent(m.Err), over != nil && errors.Is(m.Err, over):
		l.answerAndStop(ctx, m.Err)
	case over != nil:
		l.answerAndStop(ctx, fmt.Errorf("%w: %w", over, cmp.Or(m.Err, rdma.ErrListenerClosed)))
	default:
		l.scheduleRetry(ctx, m.Err)
	}
}

// isPermanent reports whether this runtime can no longer listen: it was shut down, or its driver is
// lost, as after a change of the process's credentials.
func isPermanent(err error) bool {
	removed, ok := errors.AsType[*rdma.RemovedError](err)
	return ok && removed.Err != nil || errors.Is(err, rdma.ErrShutdown)
}

// scheduleRetry schedules another attempt to listen, or gives up.
func (l *Listener) scheduleRetry(ctx actor.Context, err error) {
	now := l.local.Now()
	err = cmp.Or(err, rdma.ErrListenerClosed)
	if l.up {
		if l.cfg.Backoff.Restarts(now.Sub(l.since), false) {
			l.tries = 0
		}
		l.up, l.since, l.cause = false, now, err
	}
	d := l.cfg.Backoff.Longest(l.tries)
	if l.cfg.GiveUp > 0 {
		left := l.cfg.GiveUp - now.Sub(l.since)
		if left <= 0 {
			l.answerAndStop(ctx, l.gaveUp(err))
			return
		}
		d = min(d, left)
	}
	l.rt.Logger().Warn("rdma: the listener has ended, and will be made again", "local", l.at, "pid", ctx.Self().Id, "err", err)
	l.tries++
	rdma.After(ctx, d, &attempt{})
}

// gaveUp returns the error after the last attempt, which has failed with err.
func (l *Listener) gaveUp(err error) error {
	return fmt.Errorf("the listener at %v has ended: %w; for %v it could not listen again: %w", l.at, l.cause, l.cfg.GiveUp, err)
}

// answerAndStop answers the waiting calls and stops the actor.
func (l *Listener) answerAndStop(ctx actor.Context, err error) {
	l.answerListen(ctx, &rdma.Closed{Err: err})
	for _, c := range l.closers {
		ctx.Send(c, &rdma.Closed{})
	}
	l.closers = nil
	if l.heard {
		if err != nil && !errors.Is(err, rdma.ErrShutdown) {
			l.rt.Logger().Error("rdma: the listener has ended for good", "local", l.at, "pid", ctx.Self().Id, "err", err)
		}
		l.cfg.Ended(err)
	}
	ctx.Stop(ctx.Self())
}
