package workload

import (
	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// sink is an actor to which messages are forwarded.
type sink struct {
	h      *connHost
	p      *world.Process // process in which it runs
	pid    *actor.PID
	coming []forwarded
}

type forwarded struct {
	e *connEnd
	n uint64
}

// sinkAt returns an actor on a loop, 0, or off them, 1.
func (h *connHost) sinkAt(i int) *sink {
	if h.sinks[i] == nil {
		place := h.rt.OnLoop()
		if i == 1 {
			place = h.rt.OffLoop()
		}
		s := &sink{h: h, p: h.p}
		s.pid, _ = h.root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return s }, place), h.newName("sink"))
		h.sinks[i] = s
	}
	return h.sinks[i]
}

// forwardMessage passes a message to another actor, on a loop or off them.
func (h *connHost) forwardMessage(ctx actor.Context, e *connEnd, n uint64) {
	s := h.sinkAt(int(n % 2))
	s.coming = append(s.coming, forwarded{e, n})
	ctx.Forward(s.pid)
}

// Receive implements actor.Actor.
func (s *sink) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *connFree:
		m.k.releaseMessage()
		return
	case *connPass:
		m.k.checkBytes()
		rdma.After(ctx, m.d, &connFree{m.k})
		return
	case *rdma.Received:
		if s.p == s.h.p {
			s.handleReceived(m)
		}
	}
}

func (s *sink) handleReceived(m *rdma.Received) {
	if len(s.coming) == 0 {
		s.h.w.e.failWorld("a message is forwarded that nobody has forwarded")
		return
	}
	f := s.coming[0]
	s.coming = s.coming[1:]
	f.e.otherEnd().out.Check(s.h.w.now(), f.n, m.Data)
}
