package workload

import (
	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// newMessage generates a message and records it. It must be sent immediately.
func (e *connEnd) newMessage(group string, size int, notify, buffer bool) *rdma.Send {
	n := e.out.Submit(group, size, notify)
	e.countExpected(1)
	if buffer {
		s := rdma.NewSendBuffer(size)
		e.out.Fill(s.Bytes(), n)
		s.Notify = notify
		return s
	}
	p := make([]byte, size)
	e.out.Fill(p, n)
	s := rdma.NewSend(p)
	clear(p) // it was copied
	s.Notify = notify
	return s
}

// sendAll sends messages in one burst.
func (e *connEnd) sendAll(op connOp) {
	if e.closed && op.n > 3 {
		return
	}
	notify, clerk, inside := op.way&1 == 1, op.way&2 != 0, op.way&4 != 0
	size := op.bytes
	if op.way>>3 != 0 { // usually one that the peer accepts
		size = min(size, e.max)
	}
	group, sender := "owner", e.o.pid
	if clerk {
		group, sender = "clerk", e.clerk
	}
	burst := func(send func(s *rdma.Send)) {
		for i := range op.n {
			send(e.newMessage(group, max(size-i%3, 0), notify, op.way&8 != 0))
		}
	}
	if inside {
		e.h.root.Send(e.o.pid, &connDo{func(ctx actor.Context) {
			burst(func(s *rdma.Send) { ctx.RequestWithCustomSender(e.id, s, sender) })
		}})
		return
	}
	if e.o.stopped != nil && !clerk {
		return
	}
	burst(func(s *rdma.Send) { e.h.root.RequestWithCustomSender(e.id, s, sender) })
}

// pumping is a series of messages that are sent as fast as possible.
type pumping struct {
	left, bytes int
	full        bool // until Writable
}

func (e *connEnd) startPump(op connOp) {
	e.h.root.Send(e.o.pid, &connDo{func(ctx actor.Context) {
		if e.pumping != nil {
			e.pumping.left += op.n
			return
		}
		e.pumping = &pumping{left: op.n, bytes: op.bytes}
		e.pumpOn(ctx)
	}})
}

// pumpOn sends some more. It runs in the owner's Receive.
func (e *connEnd) pumpOn(ctx actor.Context) {
	p := e.pumping
	if p == nil || e.ended || e.closed || p.full {
		return
	}
	for range min(p.left, 40) {
		p.left--
		ctx.Request(e.id, e.newMessage("owner", min(p.bytes, e.max), false, true))
	}
	if p.left > 0 {
		rdma.After(ctx, 0, &connGo{e})
		return
	}
	e.pumping = nil
}
