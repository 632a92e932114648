package actor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// end is one end of a connection without a device: its credits, and the headers that are under way to the other.
type end struct {
	credits
	out []header
	bye bool // it has said goodbye
}

// update is what conn.update sends.
func (e *end) update() {
	if e.bye {
		return
	}
	if e.owing {
		e.out = append(e.out, e.header(typeAnswer, 0))
		e.told(0)
		e.owing = false
	}
	if !e.due() {
		return
	}
	flags := uint8(0)
	if e.ask {
		flags = flagAckNow
	}
	e.out = append(e.out, e.header(typeCredit, flags))
	e.told(flags)
}

// However two ends take turns, no more of what takes no credit is under way than receives are kept
// for it, and no more data than credits.
func TestControlMessagesUnderWay(t *testing.T) {
	most, all := 0, 0
	for seed := range uint64(20000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var ends [2]end
		for i := range ends {
			n := 1 + rng.Uint32N(16)
			ends[i].receive, ends[1-i].send = n, n
		}
		slow := 1 + rng.IntN(80) // how much less than the rest what the second sends is taken in
		for step := range 200 {
			i := rng.IntN(2)
			e, peer := &ends[i], &ends[1-i]
			what := rng.IntN(11)
			if e.bye {
				what = 4 // it says nothing any more; what it has said comes
			}
			switch {
			case what == 10 && step > 150 && rng.IntN(4) == 0:
				e.bye = true
				e.out = append(e.out, e.header(typeGoodbye, 0))
				e.told(0)
			case what == 10 && !e.probing:
				e.probing = true
				e.out = append(e.out, e.header(typeProbe, 0))
				e.told(0)
			case what < 3 && e.window() > 0 && !e.asked:
				typ := uint8(typeData)
				if e.offered-e.pulled < offersMax && rng.IntN(3) > 0 {
					typ = typeOffer
					e.offered++
				}
				e.out = append(e.out, e.header(typ, 0))
				e.sent++
				e.told(0)
			case what < 6 && len(e.out) > 0 && (i == 0 || rng.IntN(slow) == 0):
				if err := peer.take(e.out[0]); err != nil {
					t.Fatal(err)
				}
				e.out = e.out[1:]
				peer.update()
			case what < 9 && e.received-e.consumed > uint32(e.heard-e.read):
				e.consumed++
				e.update()
			case what < 3 && e.heard != e.read: // a Read begins, or ends
				if e.reading = !e.reading || rng.IntN(2) == 0; !e.reading {
					e.read++
					e.reading = e.heard != e.read && rng.IntN(3) > 0
				}
				e.update()
			case what == 9 && !e.asked && rng.IntN(4) == 0:
				e.asked = true
				e.ask = e.sent != e.acked
				e.update()
			}
			for i := range ends {
				updates, others, data := 0, 0, ends[1-i].received-ends[1-i].consumed
				for _, h := range ends[i].out {
					switch {
					case h.typ == typeCredit:
						updates++
					case h.control():
						others++
					default:
						data++
					}
				}
				most, all = max(most, updates), max(all, others)
				if others > controlReceives-updatesMax {
					t.Fatalf("seed %d: a goodbye, probes and answers under way are %d", seed, others)
				}
				if updates > updatesMax {
					t.Fatalf("seed %d: %d credit updates are under way, and there are %d receives for them", seed, updates, updatesMax)
				}
				if data > ends[1-i].receive {
					t.Fatalf("seed %d: %d messages occupy receives, for %d credits", seed, data, ends[1-i].receive)
				}
			}
		}
	}
	if all < controlReceives-updatesMax {
		t.Errorf("never more than %d others were under way, of %d: the test does not try hard enough", all, controlReceives-updatesMax)
	}
	if most < updatesMax-2 { // what states offers states what was consumed too: no more have been seen
		t.Errorf("never more than %d updates were under way, of %d: the test does not try hard enough", most, updatesMax)
	}
}

// Conversations in which anything goes on a device that ends a connection when a message finds no receive: none is ended so.
func TestEveryMessageFindsAReceive(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		credits := 1 + rng.IntN(6)
		onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
			w.f.Reorder(rng.IntN(2) == 0)
			p := w.connect(WithMessages(1<<10, credits))
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
		}, WithLimits(Limits{SendQueue: 1 << 20}))
	}
}

// A foreign peer's messages find receives too, as many as the option says, and again when they were consumed.
func TestReceivesForForeignPeers(t *testing.T) {
	for _, mode := range [][]IDOption{{}, {Raw()}} {
		onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
			server, client := w.farProbe(), w.probe()
			w.listen(server, append(mode, WithMessages(1<<10, 3))...)
			c := w.rt.CreateID(client.pid, Raw())
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

// What the receive memory, the queues or the completion queues cannot hold is refused, and says so; when there is room again it is not.
func TestConnectionsThatCannotBeHeld(t *testing.T) {
	const credits = 12
	need := credits + controlReceives
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
				w.listen(server, WithMessages(1<<10, credits))
				dial := func() *actor.PID {
					id := w.rt.CreateID(client.pid, WithMessages(1<<10, 1)) // needs less memory
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
			}, WithLimits(Limits{ReceiveMemory: 4 * (1 + controlReceives) * (1<<10 + 64)}))
		})
	}
}

// Connections that do not fit into one completion queue get another, and give their room back.
func TestCompletionQueuesAreNotOverrun(t *testing.T) {
	const conns, credits = 6, 12
	const depth = credits + controlReceives // of either side's send queue, and receives
	const each = 2 * depth
	onKernelLike(t, kernelLike{wr: depth, cqe: 2*each + 1}, func(w *world, near, far *kernelLike) {
		client, server := w.probe(), w.farProbe()
		w.listen(server, WithMessages(1<<10, credits))
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
			id := w.rt.CreateID(client.pid, WithMessages(1<<10, credits))
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
			for _, q := range l.devices[0].queues {
				if q.room != 2*each+1 {
					w.Errorf("without connections %d of %d entries are free", q.room, 2*each+1)
				}
			}
			if n := l.devices[0].conns; n != 0 {
				w.Errorf("%d connections are still counted", n)
			}
		})
	})
}
