package remoting

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// refuseRecord refuses a message of the peer's.
func (in *receiving) refuseRecord(ctx actor.Context, r *frame.Record, code frame.Code, err error) {
	in.turn.spent += otherCost
	p := in.p
	p.mu.Lock()
	p.counts.Refused++
	if r.Sender.ID != "" && r.Sender.Address == "" {
		p.putSystemLocked(&frame.Record{
			Kind: frame.KindRefused, Target: r.Target, Sender: frame.PID{ID: r.Sender.ID, Request: r.Sender.Request}, Code: code, Reason: err.Error(),
		})
	}
	p.unlockAndWake()
	in.reportRefused(ctx, r.Target, in.senderPID(&r.Sender), err)
}

// reportRefused publishes that something of the peer's was refused, and logs it: the EventStream
// may have no subscriber.
func (in *receiving) reportRefused(ctx actor.Context, target string, sender *actor.PID, err error) {
	in.host.rt.Logger().Warn("remoting: a message of a peer was refused", "target", plain.Quote(target), "peer", plain.Quote(in.who.Name), "err", err)
	in.report.publishEvent(ctx, &Refused{Target: actor.NewPID(in.host.name, target), Sender: sender, By: in.host.name, Err: err})
}

// refusedThere takes note that the peer has refused a message. If a future has asked, it fails.
func (in *receiving) refusedThere(ctx actor.Context, r *frame.Record) {
	if r.Sender.ID == "" && r.Code >= frame.RefusedMeter && r.Code <= frame.RefusedFree {
		in.applyMetering(r)
		return
	}
	no := &Refused{Target: actor.NewPID(in.who.Name, r.Target), By: in.who.Name, Err: reasonOf(r)}
	if r.Sender.ID != "" {
		no.Sender = actor.NewPID(in.host.name, r.Sender.ID)
	}
	in.p.mu.Lock()
	f, ok := in.p.futures.Take(r.Sender.ID, r.Sender.Request)
	in.p.mu.Unlock()
	if ok {
		in.host.answerFuture(&f, no, 0)
		return
	}
	in.report.publishEvent(ctx, no)
}

// reasonOf returns why the peer has refused a message.
func reasonOf(r *frame.Record) error {
	switch r.Code {
	case frame.RefusedDenied:
		return withReason(ErrDenied, r.Reason)
	case frame.RefusedUnknownType, frame.RefusedUndecodable:
		return withReason(ErrDecode, r.Reason)
	case frame.RefusedOverflow:
		return withReason(ErrOverflow, r.Reason)
	}
	return errors.New(plain.Quote(r.Reason))
}

// notDelivered takes note that the inbox has refused a message of the peer's: its target does not
// consume its messages, or cannot take it.
func (in *receiving) notDelivered(ctx actor.Context, target *actor.PID, msg any, bytes int, sender *actor.PID, why error) {
	code := frame.RefusedOther
	if errors.Is(why, inbox.ErrSlow) {
		code, why = frame.RefusedOverflow, fmt.Errorf("%w: %w", ErrOverflow, why)
	}
	p := in.p
	p.mu.Lock()
	p.counts.Refused++
	p.mu.Unlock()
	switch m := msg.(type) {
	case *actor.Watch:
		in.watchNotDelivered(tables.Pair{Watcher: m.Watcher.Id, Watched: target.Id})
		return
	case *actor.Unwatch, *actor.Stop:
		return
	}
	in.report.publishEvent(ctx, &Refused{Target: target, Sender: sender, By: in.host.name, Err: why})
	if in.greeting == open && sender != nil && sender.Address == in.who.Name && tables.IsFuture(sender.Id) {
		p.putSystem(&frame.Record{
			Kind: frame.KindRefused, Target: target.Id, Sender: frame.PID{ID: sender.Id, Request: sender.RequestId}, Code: code, Reason: why.Error(),
		}, nil)
		sender = nil
	}
	in.report.deadLetter(ctx, target, msg, bytes, sender)
}

// watchNotDelivered ends a watch of the peer's that has not begun.
func (in *receiving) watchNotDelivered(key tables.Pair) {
	in.p.putSystem(&frame.Record{
		Kind: frame.KindTerminated, Target: key.Watcher, Sender: frame.PID{ID: key.Watched}, Code: frame.TerminatedAddress,
	}, func(p *peer) bool {
		return p.watches.RemoveTheirs(key)
	})
}
