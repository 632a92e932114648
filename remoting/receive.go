package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// startInbox makes the inbox. The link's actor has started.
func (in *receiving) startInbox(ctx actor.Context) {
	cfg := &in.host.cfg
	in.inbox = inbox.New(ctx, inbox.Config{
		System: in.host.sys, Runtime: in.host.rt, Bytes: max(cfg.MaxMessage, inboxBytes), Patience: cfg.Patience,
		Refuse: func(target *actor.PID, msg any, bytes int, sender *actor.PID, why error) {
			in.notDelivered(ctx, target, msg, bytes, sender, why)
		},
		Meter: in.sendMetering,
	})
}

// newUnread returns a frame of which nothing was read.
func (in *receiving) newUnread(m *rdma.Received) unread {
	return unread{m: m, d: frame.NewReader(m.Data, &in.names)}
}

// readRecords reads a frame's records until an inbox is full, or the turn or the connection ends.
func (in *receiving) readRecords(ctx actor.Context, f unread) *parting {
	in.inbox.Begin()
	for in.greeting == open {
		if !in.mayRead(ctx) {
			in.keepUnread(f)
			return nil
		}
		if !f.next {
			ok, err := f.d.Next(&in.rec)
			if err != nil {
				return &parting{code: frame.GoodbyeBadFrame, err: fmt.Errorf("%w: %w", ErrProtocol, err)}
			}
			if !ok {
				return nil
			}
		}
		if f.next = in.rec.Kind == frame.KindUser && in.inbox.Stops(in.rec.Target) && !tables.IsFuture(in.rec.Target); f.next {
			in.keepUnread(f)
			return nil
		}
		in.countRecord(&in.rec)
		if why := in.handleRecord(ctx, &in.rec, f.m); why != nil {
			return why
		}
	}
	return nil
}

// keepUnread queues the rest of a frame, before those that wait already.
func (in *receiving) keepUnread(f unread) {
	f.m.Retain()
	in.unread.PushFront(f)
}

// readOn reads waiting frames, as far as there is room for their messages, and the turn is not
// over.
func (in *receiving) readOn(ctx actor.Context) *parting {
	for in.greeting == open && in.unread.Len() > 0 && !in.inbox.Full() && in.mayRead(ctx) {
		if why := in.readNext(ctx); why != nil {
			return why
		}
	}
	return nil
}

func (in *receiving) readNext(ctx actor.Context) *parting {
	f := in.unread.Pop()
	defer f.m.Release()
	return in.readRecords(ctx, f)
}

// handleRecord handles a record. nil: the connection goes on.
func (in *receiving) handleRecord(ctx actor.Context, r *frame.Record, m *rdma.Received) *parting {
	switch r.Kind {
	case frame.KindUser:
		return in.handleUser(ctx, r, m)
	case frame.KindWatch:
		in.watchedBy(ctx, r)
	case frame.KindUnwatch:
		in.unwatchedBy(r)
	case frame.KindTerminated:
		in.terminatedThere(r)
	case frame.KindStop:
		in.handleStop(ctx, r)
	case frame.KindSpawn:
		in.handleSpawn(r)
	case frame.KindSpawned:
		in.answerSpawn(r)
	case frame.KindRefused:
		in.refusedThere(ctx, r)
	case frame.KindGoodbye:
		return partingOf(r)
	default:
		return &parting{code: frame.GoodbyeBadFrame, err: fmt.Errorf("%w: %v on an open link", ErrProtocol, r.Kind)}
	}
	return nil
}
