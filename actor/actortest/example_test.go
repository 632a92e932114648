package actortest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid"
)

// If an address does not answer, resolving it takes the time that it was given.
func TestResolveTimesOut(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		p := w.Probe()
		id := w.CreateID(p.PID())
		w.Silence("10.0.0.9")
		nowhere := rdma.MustAddr("10.0.0.9:7471")
		p.Request(id, &cmid.ResolveAddr{Dst: nowhere, Timeout: 2 * time.Second})
		e := actortest.Next[*rdma.AddrError](p)
		if !errors.Is(e, unix.ETIMEDOUT) || w.Elapsed() != 2*time.Second {
			t.Fatal(e)
		}
	})
}

// greeter is an application's actor: it connects, sends a greeting, survives its device and tries
// again.
type greeter struct{ rt *rdma.Runtime }

type redial struct{}

func (g *greeter) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started, *redial:
		ctx.Send(g.rt.CreateID(ctx.Self()), &rdma.Dial{Addr: "10.0.0.2:7471"})
	case *rdma.Established:
		ctx.Respond(rdma.NewSend([]byte("hello")))
	case *rdma.Closed:
		rdma.After(ctx, time.Second, &redial{})
	}
}

// A server is killed, and another one takes its place; then the network fails for a while, and last
// of all the machine loses its power.
func TestServerDies(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		client := w.Probe()
		serve := func() *actortest.Probe {
			p := w.Probe()
			p.Request(w.Host("mem1", "10.0.0.2").CreateID(p.PID()), &rdma.Serve{Addr: ":7471"})
			actortest.Next[*rdma.Listening](p)
			return p
		}
		dial := func(server *actortest.Probe) *actor.PID {
			id := w.CreateID(client.PID())
			client.Request(id, &rdma.Dial{Addr: "10.0.0.2:7471"})
			actortest.Next[*rdma.ConnectRequest](server)
			server.Request(server.Sender(), &rdma.Accept{})
			actortest.Next[*rdma.Established](server)
			actortest.Next[*rdma.Established](client)
			return id
		}
		dial(serve())
		w.Crash("mem1") // kill -9: its kernel ends the connection
		actortest.Next[*rdma.Disconnected](client)
		actortest.Next[*rdma.Closed](client)

		server := serve() // another program in its place
		id := dial(server)
		w.Cut("mem0", "mem1")
		client.Send(id, rdma.NewSend([]byte("late")))
		server.Silent(10 * time.Second)
		w.Heal("mem0", "mem1")
		actortest.Next[*rdma.Received](server) // TCP has repeated it

		w.Cut("mem0", "mem1")
		w.Crash("mem1") // no power: there is no notification
		client.Send(id, rdma.NewSend([]byte("lost")))
		actortest.Next[*rdma.Disconnected](client) // TCP has given up
	})
}

// An application's actor against a server that the test plays.
func TestGreeterSurvivesItsDevice(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		server := w.Probe()
		server.Request(w.Host("mem1", "10.0.0.2").CreateID(server.PID()), &rdma.Serve{Addr: ":7471"})
		actortest.Next[*rdma.Listening](server)
		w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &greeter{w.Runtime()} }, w.Runtime().OnLoop()))
		for range 2 {
			there := w.Elapsed()
			actortest.Next[*rdma.ConnectRequest](server)
			if d := w.Elapsed() - there; d > time.Second {
				t.Errorf("it has come back %v after its device", d)
			}
			server.Request(server.Sender(), &rdma.Accept{})
			actortest.Next[*rdma.Established](server)
			if m := actortest.Next[*rdma.Received](server); string(m.Data) != "hello" {
				t.Errorf("it says %q", m.Data)
			}
			w.RemoveDevice("mem0")
			actortest.Next[*rdma.Disconnected](server)
			actortest.Next[*rdma.Closed](server)
			server.Silent(10 * time.Second)
			w.AddDevice("mem0")
		}
	})
}
