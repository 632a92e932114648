package remoting

import (
	"errors"
	"fmt"

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
	l.notify(ctx, &Refused{Target: actor.NewPID(l.n.name, r.Target), Sender: l.sender(&r.Sender), By: l.n.name, Err: err})
}

// refusedThere takes note that the peer has refused a message. If a future has asked, it fails.
func (l *link) refusedThere(ctx actor.Context, r *frame.Record) {
	var err error
	switch r.Code {
	case frame.RefusedDenied:
		err = ErrDenied
	case frame.RefusedOverflow:
		err = ErrOverflow
	default:
		err = ErrDecode
	}
	no := &Refused{Target: actor.NewPID(l.who.Name, r.Target), By: l.who.Name, Err: fmt.Errorf("%w: %s", err, r.Reason)}
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

// notDelivered takes note that the inbox has refused a message of the peer's: its target does not
// consume what it gets, or cannot take it.
func (l *link) notDelivered(ctx actor.Context, target *actor.PID, msg any, bytes int, sender *actor.PID, why error) {
	if errors.Is(why, inbox.ErrSlow) {
		why = fmt.Errorf("%w: %w", ErrOverflow, why)
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
			Kind: frame.KindRefused, Target: target.Id, Sender: frame.PID{ID: sender.Id, Request: sender.RequestId}, Code: frame.RefusedOverflow, Reason: why.Error(),
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
