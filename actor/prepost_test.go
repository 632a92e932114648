package actor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// Conversations in which anything goes on a device that ends a connection when a message finds no
// receive: none is ended so.
func TestEveryMessageFindsAReceive(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		credits := 1 + rng.IntN(6)
		onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
			w.f.Reorder(rng.IntN(2) == 0)
			p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: credits})
			for _, side := range []*probe{p.client, p.server} {
				react := rand.New(rand.NewPCG(seed, 4))
				side.reactWith(func(ctx actor.Context) {
					m, ok := ctx.Message().(*Received)
					if !ok || react.IntN(3) > 0 {
						return
					}
					held := m.Retain()
					time.AfterFunc(time.Duration(react.IntN(5))*time.Millisecond, held.Release)
				})
			}
			for range 100 {
				from, id := p.client, p.c
				if rng.IntN(2) == 0 {
					from, id = p.server, p.s
				}
				for range rng.IntN(2 * credits) {
					from.send(id, NewSend([]byte("x")))
				}
				time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			}
			if rng.IntN(2) == 0 {
				p.server.send(p.s, &Close{})
			}
			p.client.send(p.c, &Close{})
			for _, side := range []*probe{p.client, p.server} {
				all := until[*Closed](side)
				if c := all[len(all)-1].msg.(*Closed); c.Err != nil {
					w.Errorf("seed %d, %d credits: closed because of %v", seed, credits, c.Err)
				}
			}
		}, Config{Limits: Limits{SendQueue: 1 << 20}})
	}
}

// A foreign peer's messages find receives too, as many as the option sets, and again when they were
// consumed.
func TestReceivesForForeignPeers(t *testing.T) {
	for _, raw := range []bool{false, true} {
		onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
			server, client := w.farProbe(), w.probe()
			w.listen(server, IDConfig{Raw: raw, MaxMessage: 1 << 10, Credits: 3})
			c := w.rt.CreateID(client.pid, IDConfig{Raw: true})
			client.send(c, &Dial{Addr: there + ":7471"})
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			next[*Established](client)
			for range 5 {
				for i := range 3 {
					client.send(c, NewSend(fmt.Append(nil, i)))
				}
				for i := range 3 {
					if g := server.any(); g.data != fmt.Sprint(i) {
						w.Fatalf("message %d is %v", i, g)
					}
				}
				settle()
			}
			client.send(c, &Close{})
			end := until[*Closed](server)
			if cl := end[len(end)-1].msg.(*Closed); cl.Err != nil {
				w.Errorf("closed because of %v", cl.Err)
			}
		})
	}
}

// Connections that the receive memory, the queues or the completion queues cannot hold are refused,
// with that reason; when there is room again they are not.
func TestConnectionsThatCannotBeHeld(t *testing.T) {
	const credits = 12
	need := credits + wire.ControlReceives
	for name, tt := range map[string]struct {
		like  kernelLike
		what  string
		never bool // there is no room for the first either
	}{
		"memory":      {kernelLike{}, "bytes of receive buffers", false},
		"queue":       {kernelLike{wr: need - 1}, "receives", true},
		"completions": {kernelLike{wr: need, cqe: need}, "completions", true},
	} {
		t.Run(name, func(t *testing.T) {
			onKernelLike(t, tt.like, func(w *world, near, _ *kernelLike) {
				client, server := w.probe(), w.farProbe()
				near.cqe = 1 << 15 // it is the server's that is too short
				w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: credits})
				dial := func() *actor.PID {
					// needs less memory
					id := w.rt.CreateID(client.pid, IDConfig{MaxMessage: 1 << 10, Credits: 1})
					client.send(id, &Dial{Addr: there + ":7471"})
					return id
				}
				refused := func(s *actor.PID) {
					server.send(s, &Accept{})
					f, _ := next[*CommandFailed](server)
					var r *ResourceError
					if !errors.As(f, &r) || r.What != tt.what || !errors.Is(f, unix.ENOMEM) {
						w.Errorf("refused with %v, want a ResourceError for %s", f, tt.what)
					}
				}
				if tt.never {
					dial()
					_, s := next[*ConnectRequest](server)
					refused(s)
					return
				}
				first := dial()
				_, s1 := next[*ConnectRequest](server)
				server.send(s1, &Accept{})
				next[*Established](server)
				next[*Established](client)
				dial()
				_, s2 := next[*ConnectRequest](server)
				refused(s2)
				client.send(first, NewSend([]byte("still here")))
				if g := server.any(); g.data != "still here" {
					w.Errorf("got %v", g)
				}
				client.send(first, &Close{})
				until[*Closed](server)
				until[*Closed](client)
				server.send(s2, &Accept{})
				next[*Established](server)
				next[*Established](client)
			}, Config{Limits: Limits{ReceiveMemory: 5 * (1 + wire.ControlReceives) * (1<<10 + 64)}})
		})
	}
}

// Connections that do not fit into one completion queue get another, and give their room back.
func TestCompletionQueuesAreNotOverrun(t *testing.T) {
	const conns, credits = 6, 12
	const depth = credits + wire.ControlReceives // of either side's send queue, and receives
	const each = 2 * depth
	onKernelLike(t, kernelLike{wr: depth, cqe: 2*each + 1}, func(w *world, near, far *kernelLike) {
		client, server := w.probe(), w.farProbe()
		w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: credits})
		server.reactWith(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Received:
				ctx.Respond(NewSend(m.Data))
			}
		})
		var ids []*actor.PID
		for range conns {
			id := w.rt.CreateID(client.pid, IDConfig{MaxMessage: 1 << 10, Credits: credits})
			client.send(id, &Dial{Addr: there + ":7471"})
			next[*Established](client)
			ids = append(ids, id)
		}
		for range 3 * depth {
			for _, id := range ids {
				client.send(id, NewSend([]byte("x")))
			}
		}
		for range 3 * depth * conns {
			next[*Received](client)
		}
		for _, k := range []*kernelLike{near, far} {
			for _, d := range k.in.devs {
				if want := (conns + 1) / 2; d.cqs != want {
					w.Errorf("%s has %d completion queues for %d connections, want %d", d.Name(), d.cqs, conns, want)
				}
			}
		}
		for _, id := range ids {
			client.send(id, &Close{})
			end := until[*Closed](client)
			if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != 3*depth {
				w.Errorf("the end: %v", end)
			}
		}
		settle()
		w.onLoop(w.rt, func(l *loop) {
			for _, q := range l.Devices[0].Queues {
				if q.Room != 2*each+1 {
					w.Errorf("without connections %d of %d entries are free", q.Room, 2*each+1)
				}
			}
			if n := l.Devices[0].Conns; n != 0 {
				w.Errorf("%d connections are still counted", n)
			}
		})
	})
}
