package workload

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// serve is the server: two listeners, whose owner sends back what it receives.
func (w *strangers) serve(p *world.Process) {
	rt, ok := w.Open(p)
	if !ok {
		return
	}
	owner := p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest:
			w.greet(m)
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
		}
	}, rt.OnLoop()))
	for n := range 2 {
		p.Go(func() {
			for p.Context().Err() == nil {
				err := rt.ListenAndServe(p.Context(), w.Addr(0, n), owner, rdma.IDConfig{})
				w.World.Trace("%s does not listen to %d any more: %v", w.Name, n, err != nil)
				p.Sleep(time.Second) // its device may come back
			}
		})
	}
}

// greet judges a request that the owner hears of: it is a member's.
func (w *strangers) greet(r *rdma.ConnectRequest) {
	for _, m := range w.members {
		if len(r.PrivateData) == 1 && int(r.PrivateData[0]) == m.number {
			if r.Identity != w.identity(m.machine) || r.Local.String() != w.Addr(0, m.listener) {
				w.fail("%q connects to %v as member %d, which is %q and has dialled listener %d",
					r.Identity, r.Local, m.number, w.identity(m.machine), m.listener)
			}
			return
		}
	}
	w.fail("the owner hears of a stranger: %q, from %v, with %x", r.Identity, r.Peer, r.PrivateData)
}

// belong runs the members of a machine that have not begun.
func (w *strangers) belong(p *world.Process, machine int) {
	rt, ok := w.Open(p)
	if !ok {
		return
	}
	for _, m := range w.members {
		if m.machine != machine || m.p != nil {
			continue
		}
		p.Go(func() {
			p.Sleep(firstStranger + m.at - w.now())
			if p.Context().Err() == nil {
				m.p, m.rt = p, rt
				p.System().Root.Spawn(actor.PropsFromFunc(m.receive, rt.OnLoop()))
			}
		})
	}
}

// member is a connection that must not notice strangers.
type member struct {
	*memberOp
	w           *strangers
	p           *world.Process
	rt          *rdma.Runtime
	id          *actor.PID
	waits       *oracle.Behaved
	established bool
	got         int
	why         error
	over        bool
}

type (
	memberDials struct{}
	memberSends struct{}
)

// memberAgain is after what time a member dials again.
const memberAgain = 500 * time.Millisecond

func (m *member) receive(ctx actor.Context) {
	now := m.w.now()
	switch ev := ctx.Message().(type) {
	case *actor.Started:
		m.waits.Wants(now, 1)
		m.dial(ctx)
	case memberDials:
		m.dial(ctx)
	case memberSends:
		m.send(ctx)
	case *rdma.Established:
		m.established = true
		m.excuse()
		m.waits.Gets(now, 1)
		m.send(ctx)
	case *rdma.Received:
		m.received(ctx, ev)
	case rdma.Failure:
		if m.why == nil { // a Close may fail, too
			ctx.Respond(&rdma.Close{})
		}
		m.why = ev
	case *rdma.Closed:
		m.closed(ctx, ev)
	}
}

func (m *member) dial(ctx actor.Context) {
	m.why = nil
	m.id = m.rt.CreateID(ctx.Self(), rdma.IDConfig{})
	ctx.Send(m.id, &rdma.Dial{Addr: m.w.Addr(0, m.listener), PrivateData: []byte{byte(m.number)}})
}

// strange numbers the members' messages, apart from those of other workloads.
const strange = 1 << 22

func (m *member) send(ctx actor.Context) {
	m.waits.Wants(m.w.now(), 1)
	b := make([]byte, m.size)
	oracle.Fill(b, strange+uint64(m.number), uint64(m.got))
	ctx.Request(m.id, rdma.NewSend(b))
}

func (m *member) received(ctx actor.Context, ev *rdma.Received) {
	b := make([]byte, m.size)
	oracle.Fill(b, strange+uint64(m.number), uint64(m.got))
	if string(b) != string(ev.Data) {
		m.w.fail("member %d gets other bytes than it has sent", m.number)
	}
	m.got++
	m.excuse()
	m.waits.Gets(m.w.now(), 1)
	if m.got < m.n {
		rdma.After(ctx, m.every, memberSends{})
		return
	}
	m.leave()
	ctx.Request(m.id, &rdma.Close{})
}

// closed notes the end. Who could not connect tries again: there may have been too many strangers.
func (m *member) closed(ctx actor.Context, ev *rdma.Closed) {
	switch {
	case m.over:
	case m.established || m.excuse():
		m.excuse()
		m.waits.Ended(m.w.now(), rdma.Brief(ev.Err))
		m.leave()
	default:
		m.w.World.Trace("member %d is not connected: %s", m.number, rdma.Brief(m.why))
		rdma.After(ctx, memberAgain, memberDials{})
		return
	}
	ctx.Stop(ctx.Self())
}

// leave ends what is judged.
func (m *member) leave() {
	m.over = true
	m.waits.Excuse()
}

// excuse has a member not judged that a fault or an attack may have hit.
func (m *member) excuse() (excused bool) {
	excused = m.w.DisturbedTo(m.listener, m.machine, 0)
	if excused {
		m.waits.Excuse()
	}
	return excused
}
