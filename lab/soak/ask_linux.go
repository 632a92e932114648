package main

import (
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// atOnce is the maximum number of calls that an asker has in flight.
const atOnce = 8

// asker is an actor that makes calls, each of which must be answered exactly once.
type asker struct {
	c       *customer
	worker  uint64
	client  *rpc.Client
	pid     *actor.PID
	asked   map[*rpc.Pending]asked
	seq     uint64
	never   lately
	closing bool
	closed  chan struct{}
}

type asked struct {
	q   question
	end func(error)
}

func (c *customer) ask(worker uint64, client *rpc.Client) *asker {
	a := &asker{c: c, worker: worker, client: client, asked: make(map[*rpc.Pending]asked), closed: make(chan struct{})}
	a.pid = c.system.Root.Spawn(actor.PropsFromFunc(a.receive, c.rt.OnLoop()))
	return a
}

func (a *asker) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		rdma.After(ctx, 0, another{})
	case another:
		if !a.closing {
			a.next(ctx)
			rdma.After(ctx, 20*time.Millisecond, another{})
		}
	case *rpc.Reply[rpc.Bytes]:
		a.reply(m)
	case hangUp:
		a.closing = true
		for p := range a.asked {
			p.Cancel()
		}
	}
	if a.closing && len(a.asked) == 0 {
		a.closing = false
		close(a.closed)
		ctx.Stop(ctx.Self())
	}
}

func (a *asker) next(ctx actor.Context) {
	const most = 4 << 10
	if len(a.asked) >= atOnce {
		return
	}
	a.seq++
	q := question{Client: a.c.number, Worker: a.worker, Seq: a.seq, Never: a.never, Size: rand.N(uint32(most))}
	request := rpc.Bytes(q.pack(rand.N(most)))
	end := a.c.begin(askedCalls, patience+grace)
	a.asked[rpc.Go(ctx, a.client, ask, &request)] = asked{q, end}
}

func (a *asker) reply(m *rpc.Reply[rpc.Bytes]) {
	call, ok := a.asked[m.Call]
	if !ok {
		a.c.fault("an actor's call has two answers, or one that it has not asked for: %v", m.Err)
		return
	}
	delete(a.asked, m.Call)
	err := m.Err
	switch {
	case a.closing:
		err = nil // it was cancelled
	case err != nil:
		a.never.add(call.q.Seq, err)
	default:
		err = call.q.answered(0, *m.Value)
	}
	call.end(err)
}

// close waits until every call is answered.
func (a *asker) close() {
	a.c.system.Root.Send(a.pid, hangUp{})
	a.c.wait("the calls of an actor", a.closed)
}
