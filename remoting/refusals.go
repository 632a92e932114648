package remoting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
)

// refuseRecord refuses a message of the peer's.
func (l *link) refuseRecord(ctx actor.Context, r *frame.Record, code frame.Code, err error) {
	p := l.p
	p.mu.Lock()
	p.counts.Refused++
	if r.Sender.ID != "" && r.Sender.Address == "" {
		p.putSystemLocked(&frame.Record{
			Kind: frame.KindRefused, Target: r.Target, Sender: frame.PID{ID: r.Sender.ID, Request: r.Sender.Request}, Code: code, Reason: err.Error(),
		})
	}
	p.unlock()
	l.refused(ctx, r.Target, l.sender(&r.Sender), err)
}

// refused publishes that something of the peer's was refused, and logs it: perhaps nobody hears of
// it there.
func (l *link) refused(ctx actor.Context, target string, sender *actor.PID, err error) {
	l.n.rt.Logger().Warn("remoting: a message of a peer was refused", "target", target, "peer", l.who.Name, "err", err)
	l.notify(ctx, &Refused{Target: actor.NewPID(l.n.name, target), Sender: sender, By: l.n.name, Err: err})
}

// refusedThere takes note that the peer has refused a message. If a future has asked, it fails.
func (l *link) refusedThere(ctx actor.Context, r *frame.Record) {
	no := &Refused{Target: actor.NewPID(l.who.Name, r.Target), By: l.who.Name, Err: reasonOf(r)}
	if r.Sender.ID != "" {
		no.Sender = actor.NewPID(l.n.name, r.Sender.ID)
	}
	l.p.mu.Lock()
	f, ok := l.p.futures.take(r.Sender.ID, r.Sender.Request)
	l.p.mu.Unlock()
	if ok {
		l.n.answer(&f, no, 0)
		return
	}
	l.notify(ctx, no)
}

// reasonOf is why the peer has refused a message.
func reasonOf(r *frame.Record) error {
	switch r.Code {
	case frame.RefusedDenied:
		return because(ErrDenied, r.Reason)
	case frame.RefusedUnknownType, frame.RefusedUndecodable:
		return because(ErrDecode, r.Reason)
	case frame.RefusedOverflow:
		return because(ErrOverflow, r.Reason)
	}
	return errors.New(r.Reason)
}

// because adds a peer's reason to an error. The reason may begin with the same text: the peer has
// made it of such an error.
func because(err error, reason string) error {
	if reason = strings.TrimPrefix(strings.TrimPrefix(reason, err.Error()), ": "); reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, reason)
}

// notDelivered takes note that the inbox has refused a message of the peer's: its target does not
// consume what it gets, or cannot take it.
func (l *link) notDelivered(ctx actor.Context, target *actor.PID, msg any, bytes int, sender *actor.PID, why error) {
	code := frame.RefusedOther
	if errors.Is(why, inbox.ErrSlow) {
		code, why = frame.RefusedOverflow, fmt.Errorf("%w: %w", ErrOverflow, why)
	}
	p := l.p
	p.mu.Lock()
	p.counts.Refused++
	p.mu.Unlock()
	switch m := msg.(type) {
	case *actor.Watch:
		l.watchNotDelivered(pair{watcher: m.Watcher.Id, watched: target.Id})
		return
	case *actor.Unwatch, *actor.Stop:
		return
	}
	l.notify(ctx, &Refused{Target: target, Sender: sender, By: l.n.name, Err: why})
	if l.greeting == open && sender != nil && sender.Address == l.who.Name && isFuture(sender.Id) {
		p.putSystem(&frame.Record{
			Kind: frame.KindRefused, Target: target.Id, Sender: frame.PID{ID: sender.Id, Request: sender.RequestId}, Code: code, Reason: why.Error(),
		}, nil)
		sender = nil
	}
	l.deadLetter(ctx, target, msg, bytes, sender)
}

// watchNotDelivered ends a watch of the peer's that has not begun.
func (l *link) watchNotDelivered(key pair) {
	l.p.putSystem(&frame.Record{
		Kind: frame.KindTerminated, Target: key.watcher, Sender: frame.PID{ID: key.watched}, Code: frame.TerminatedAddress,
	}, func(p *peer) bool {
		return p.watches.removeTheirs(key)
	})
}
