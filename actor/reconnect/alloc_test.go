//go:build !race

package reconnect_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// pingPong is an owner that sends the next message when the answer has come. It counts down, and
// reports at the end.
type pingPong struct {
	link *actor.PID
	left int
	done chan struct{}
}

type begin struct{ n int }

func (p *pingPong) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *begin:
		p.left = m.n
		ctx.Send(p.link, rdma.NewSend([]byte("ping")))
	case *rdma.Received:
		if p.left--; p.left > 0 {
			ctx.Send(p.link, rdma.NewSend(m.Data))
			return
		}
		p.done <- struct{}{}
	}
}

// What stands between a connection and its owner adds no allocation to a message's way there and
// back: the difference to an owner that has the connection itself. (The race detector makes pools
// forget on purpose.)
func TestNoAllocations(t *testing.T) {
	actortest.Run(t, actortest.Config{Runtime: rdma.Config{Logger: quiet}}, func(w *actortest.World) {
		far := w.Host("mem1", "10.0.0.2")
		server := w.System().Root.Spawn(actor.PropsFromFunc(echo, far.OnLoop()))
		w.System().Root.Send(far.CreateID(server), &rdma.Serve{Addr: ":7471"})
		w.Wait()
		const messages = 1000
		measure := func(p *pingPong, owner *actor.PID) float64 {
			w.Wait()
			return testing.AllocsPerRun(5, func() {
				w.System().Root.Send(owner, &begin{messages})
				<-p.done
			}) / messages
		}
		spawn := func() (*pingPong, *actor.PID) {
			p := &pingPong{done: make(chan struct{})}
			pid := w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }, w.Runtime().OnLoop()))
			w.T().Cleanup(func() { _ = w.System().Root.StopFuture(pid).Wait() })
			return p, pid
		}
		direct, owner := spawn()
		direct.link = w.CreateID(owner)
		w.System().Root.Send(direct.link, &rdma.Dial{Addr: there})
		without := measure(direct, owner)
		through, owner := spawn()
		through.link = reconnect.Spawn(w.Runtime(), owner, reconnect.Config{Dial: rdma.Dial{Addr: there}})
		with := measure(through, owner)
		t.Logf("%.2f allocations for a round trip, %.2f without the reconnecting actor", with, without)
		if with > without+0.1 {
			t.Errorf("%.2f allocations for a round trip, %.2f without the reconnecting actor", with, without)
		}
		w.T().Cleanup(func() { _ = w.System().Root.StopFuture(server).Wait() })
	})
}
