package workload

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// Echo is the smallest workload: a server sends back what it receives, and clients dial it, send
// one message, wait for it, and close.
var Echo = &Kind{
	Name: "echo", Machines: 2, Verbs: []string{"small", "large"},
	Draw: drawEcho,
	New:  func(e *Env, ops []Op) Workload { return &echo{Env: e, ops: ops, calls: make([]*echoCall, len(ops))} },
}

// echoID has room for the large ones.
var echoID = rdma.IDConfig{MaxMessage: 512 << 10}

// echoOp is a connection with one message.
type echoOp struct {
	at      time.Duration
	machine int
	size    int
}

func (o echoOp) String() string {
	return fmt.Sprintf("at %v machine %d has %d bytes sent back", o.at, o.machine+1, o.size)
}

func drawEcho(d Draw, n int) (ops []Op) {
	for range n {
		o := echoOp{at: time.Duration(d.Int64N(int64(d.Time))), machine: 1 + d.IntN(d.Machines-1)}
		if d.Has["large"] && (d.IntN(4) == 0 || !d.Has["small"]) {
			o.size = 100_000 + d.IntN(200_000)
		} else {
			o.size = 1 + d.IntN(2000)
		}
		ops = append(ops, o)
	}
	return ops
}

// echo is the workload.
type echo struct {
	*Env
	ops   []Op
	calls []*echoCall
}

// Start implements Workload.
func (e *echo) Start() {
	e.Env.Start(0, e.serve)
	for m := 1; m < len(e.Machines); m++ {
		e.Env.Start(m, func(p *world.Process) { e.dial(p, m) })
	}
}

func (e *echo) serve(p *world.Process) {
	rt, ok := e.Open(p)
	if !ok {
		return
	}
	owner := p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
		}
	}, rt.OnLoop()))
	for p.Context().Err() == nil {
		err := rt.ListenAndServe(p.Context(), e.Addr(0, 0), owner, echoID)
		e.World.Trace("%s does not listen any more: %v", e.Name, err != nil)
		p.Sleep(time.Second) // its device may come back
	}
}

// dial runs the connections of a machine.
func (e *echo) dial(p *world.Process, machine int) {
	rt, ok := e.Open(p)
	if !ok {
		return
	}
	for n, op := range e.ops {
		o := op.(echoOp)
		if o.machine != machine || e.calls[n] != nil {
			continue
		}
		c := &echoCall{e: e, p: p, rt: rt, n: n, size: o.size}
		p.Go(func() {
			p.Sleep(time.Second + o.at - e.World.Now())
			e.calls[n] = c
			p.System().Root.Spawn(actor.PropsFromFunc(c.receive, rt.OnLoop()))
		})
	}
}

// Done implements Workload.
func (e *echo) Done() bool {
	for _, c := range e.calls {
		if c == nil || !c.closed {
			return false
		}
	}
	return true
}

// Killed implements Killer.
func (e *echo) Killed(p *world.Process) {
	for _, c := range e.calls {
		if c != nil && c.p == p {
			c.closed = true
		}
	}
}

// Check implements Workload.
func (e *echo) Check() {
	for n, c := range e.calls {
		if !c.came && !e.scarce() && !e.Disturbed(0, e.ops[n].(echoOp).machine) {
			e.World.Fail("%s: connection %d has ended without its message: %v", e.Name, n, c.why)
		}
	}
}

// scarce reports whether limits may end a connection.
func (e *echo) scarce() bool { return e.Config.Limits != rdma.Limits{} }

// echoCall is a connection.
type echoCall struct {
	e            *echo
	p            *world.Process
	rt           *rdma.Runtime
	n, size      int
	came, closed bool
	why          any
}

func (c *echoCall) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Send(c.rt.CreateID(ctx.Self(), echoID), &rdma.Dial{Addr: c.e.Addr(0, 0)})
	case *rdma.Established:
		p := make([]byte, c.size)
		oracle.Fill(p, uint64(c.n), 0)
		ctx.Respond(rdma.NewSend(p))
	case *rdma.Received:
		c.came = true
		p := make([]byte, c.size)
		oracle.Fill(p, uint64(c.n), 0)
		if string(p) != string(m.Data) {
			c.e.World.Fail("%s: connection %d got other bytes than it has sent", c.e.Name, c.n)
		}
		ctx.Respond(&rdma.Close{})
	case *rdma.Closed:
		c.closed = true
		ctx.Stop(ctx.Self())
	case rdma.Failure:
		if c.why == nil { // a Close may fail, too
			ctx.Respond(&rdma.Close{})
		}
		c.why = m
	}
}
