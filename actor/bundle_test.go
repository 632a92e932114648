package actor

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// sentBytes returns a copy of the bytes of a work request.
func sentBytes(wr *verbs.SendWR) []byte {
	b := append([]byte{}, wr.Inline...)
	for _, e := range wr.SGL {
		b = append(b, e.MR.Bytes[e.Offset:e.Offset+e.Length]...)
	}
	return b
}

// messagesIn returns the messages in a Send that is not secured, without offers.
func messagesIn(b []byte) (messages [][]byte) {
	switch wire.Type(b[0]) {
	case wire.TypeData:
		return [][]byte{b[wire.HeaderLen:]}
	case wire.TypeBundle:
		for rest := b[wire.HeaderLen:]; len(rest) > 0; {
			var m []byte
			m, rest = wire.CutBundled(rest)
			messages = append(messages, m)
		}
	}
	return messages
}

// tapped records the posts of id's connection from now on.
func (w *world) tapped(rt *Runtime, id *actor.PID) *postings {
	w.Helper()
	q := new(postings)
	w.onLoop(rt, func(l *loop) {
		c := w.conn(l, id)
		q.QP, c.QP = c.QP, q
	})
	return q
}

// submitted submits messages within one turn of the loop.
func (w *world) submitted(rt *Runtime, id *actor.PID, messages ...[]byte) {
	w.Helper()
	w.onLoop(rt, func(l *loop) {
		for _, m := range messages {
			w.conn(l, id).Submit(&takenSend(m).out)
		}
	})
}

// types returns the types of the posted messages that are not secured, once the loops are idle.
func (q *postings) types() (types []wire.Type) {
	for _, wr := range q.settled() {
		if wr.Op == verbs.Send {
			types = append(types, wire.Type(wr.Inline[0]))
		}
	}
	return types
}

// A message that is alone in its turn leaves within that turn, as it did before there were bundles.
// The first of several does, too, and the others leave together at the turn's end.
func TestBundlesOfATurn(t *testing.T) {
	onAllKinds(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 64})
		q := w.tapped(w.rt, p.c)
		w.onLoop(w.rt, func(l *loop) {
			w.conn(l, p.c).Submit(&takenSend([]byte("alone")).out)
			if len(q.posted) != 1 || !bytes.Equal(q.posted[0].Inline, append([]byte{byte(wire.TypeData), 0, 0, 0, 0, 0, 0, 0}, "alone"...)) {
				w.Errorf("a message that is alone has left as %v", q.posted)
			}
		})
		if g := p.server.any(); g.data != "alone" {
			w.Fatalf("got %v", g)
		}
		settle()
		q.posted = nil
		w.submitted(w.rt, p.c, []byte("first"), []byte("second"), nil, []byte("fourth"))
		for _, want := range []string{"first", "second", "", "fourth"} {
			if g := p.server.any(); g.data != want {
				w.Fatalf("got %v, want %q", g, want)
			}
		}
		if got := q.types(); !slices.Equal(got, []wire.Type{wire.TypeData, wire.TypeBundle}) {
			w.Errorf("four messages have left as %v", got)
		}
		w.closes(p)
	})
}

// Whatever is sent, in which sizes and with how much room at the peer: it arrives whole, in order
// and once, on every kind of connection, and with at most as many Sends.
func TestBundlesKeepMessages(t *testing.T) {
	for name, made := range map[string]func(testing.TB) IDConfig{
		"open": func(testing.TB) IDConfig { return IDConfig{} }, "secured": func(tb testing.TB) IDConfig { return secured(tb) },
	} {
		t.Run(name, func(t *testing.T) {
			onAllKinds(t, func(w *world) {
				rng := rand.New(rand.NewPCG(1, seedOf(t.Name())))
				cfg := made(w)
				cfg.MaxMessage, cfg.Credits = 100<<10, 1+rng.IntN(100)
				p := w.connect(cfg)
				q := w.tapped(w.rt, p.c)
				var want [][]byte
				for range 30 {
					var burst [][]byte
					for range rng.IntN(60) {
						size := []int{0, 1, 10, 60, 500, 4000, 4097, 5000, 40 << 10}[rng.IntN(9)]
						if rng.IntN(3) > 0 {
							size = rng.IntN(80)
						}
						burst = append(burst, pattern(size, len(want)+len(burst)))
					}
					w.submitted(w.rt, p.c, burst...)
					want = append(want, burst...)
					time.Sleep(time.Duration(rng.IntN(2)) * time.Millisecond)
				}
				for i, m := range want {
					if g := p.server.any(); g.data != string(m) {
						w.Fatalf("message %d of %d bytes is one of %d", i, len(m), len(g.data))
					}
				}
				sends := 0
				for _, wr := range q.settled() {
					if wr.Op == verbs.Send {
						sends++
					}
				}
				if cfg.Credits > 4 && sends >= len(want) {
					w.Errorf("%d messages have left in %d Sends", len(want), sends)
				}
				p.client.send(p.c, &Close{})
				end := until[*Closed](p.client)
				if c := end[len(end)-1].msg.(*Closed); c.Err != nil || int(c.Delivered) != len(want) {
					w.Errorf("the end: %v, %d were sent", end, len(want))
				}
			}, Config{Limits: Limits{SendQueue: 2000}})
		})
	}
}

// Messages wait for nothing that was submitted behind them: an operation, a message that is posted
// or refused immediately, the goodbye.
func TestBundlesAreNotOvertaken(t *testing.T) {
	onFlavors(t, func(w *world) {
		r := w.reach(1<<10, IDConfig{MaxMessage: 1 << 10, Credits: 64})
		q := w.tapped(w.rt, r.c)
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, r.c)
			for i := range 4 {
				c.Submit(&takenSend([]byte{byte(i)}).out)
			}
			if err := c.OneSided(r.op(verbs.Write, 0, 1)); err != nil {
				w.Error(err)
			}
			if len(q.posted) != 3 {
				w.Error("the operation waits with the messages")
			}
			for i := range 4 {
				c.Submit(&takenSend([]byte{byte(4 + i)}).out)
			}
			if !c.TryPost(&takenSend([]byte{8}).out) {
				w.Error("a message was refused for which there is room")
			}
			for i := range 3 {
				c.Submit(&takenSend([]byte{byte(9 + i)}).out)
			}
			if !c.SayGoodbye() {
				w.Error("there is no goodbye")
			}
		})
		var got []string
		for _, wr := range q.settled() {
			if wr.Op != verbs.Send {
				got = append(got, wr.Op.String())
				continue
			}
			got = append(got, fmt.Sprint(wr.Inline[0], messagesIn(wr.Inline)))
		}
		want := []string{
			"1 [[0]]", "13 [[1] [2] [3]]", verbs.Write.String(), "13 [[4] [5] [6] [7]]", "1 [[8]]", "13 [[9] [10] [11]]", "4 []",
		}
		if !slices.Equal(got, want) {
			w.Errorf("posted: %q\nwant:   %q", got, want)
		}
		r.client.send(r.c, &DestroyID{})
		until[*Closed](r.client)
		until[*Closed](r.server)
	})
}

// Renew sees no message that leaves in its turn, and one with a Renew goes alone.
func TestBundlesWithoutRenew(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 4})
		q := w.tapped(w.rt, p.c)
		renewed := 0
		var kept []*Received
		p.server.reactWith(keeping(&kept))
		w.onLoop(w.rt, func(l *loop) {
			for i := range 6 {
				s := takenSend([]byte{byte(i)})
				s.out.As(false, func(p []byte) []byte { renewed++; return p })
				w.conn(l, p.c).Submit(&s.out)
			}
		})
		settle()
		if renewed != 0 || len(q.posted) != 4 {
			w.Errorf("%d messages have left, %d were renewed", len(q.posted), renewed)
		}
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
			kept = nil
		})
		settle()
		if renewed != 2 || slices.Contains(q.types(), wire.TypeBundle) {
			w.Errorf("%d messages were renewed, the types are %v", renewed, q.types())
		}
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
		})
		w.closes(p)
	})
}

// No more messages wait for the end of the turn than the queue allows. The others are posted before
// that, and none is refused for which there is room.
func TestBundlesInAShortQueue(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 100})
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, p.c)
			for range 50 {
				if c.Submit(&takenSend(nil).out); c.Counts().Queued > 3 {
					w.Fatalf("%d messages wait", c.Counts().Queued)
				}
			}
		})
		for range 50 {
			next[*Received](p.server)
		}
		settle()
		p.client.quiet()
		w.closes(p)
	}, Config{Limits: Limits{SendQueue: 3}})
}

// An owner that leaves in the middle of a bundle, or ends the connection there, affects no other
// connection, and loses no more of the bundle than it reports.
func TestLeavingInABundle(t *testing.T) {
	for name, tt := range map[string]struct {
		leave func(ctx actor.Context, id *actor.PID)
		comes int
	}{
		"panic":   {func(actor.Context, *actor.PID) { panic("for the test") }, 3},
		"destroy": {func(ctx actor.Context, id *actor.PID) { ctx.Send(id, &DestroyID{}) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			onAllKinds(t, func(w *world) {
				good := w.connect()
				w.sys.Root.Stop(good.listener)
				until[*Closed](good.server)
				server := w.farProbe()
				w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: 8})
				mallory, id, s, _ := w.peerOf(server, 5)
				server.reactWith(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok && string(m.Data) == "leave" {
						tt.leave(ctx, s)
					}
				})
				mallory.send(id, NewSend(bundleOf("before", "leave", "behind")))
				end := until[*Closed](mallory)
				if len(end) == 0 {
					w.Error("no end")
				}
				settle()
				if n := w.held(w.far); n != 0 {
					w.Errorf("%d bytes count when nothing is left of the connection", n)
				}
				good.client.send(good.c, NewSend([]byte("fine")))
				if g := good.server.any(); g.data != "fine" {
					w.Errorf("the other connection brought %v", g)
				}
			})
		})
	}
}

// refusing is a queue pair that refuses postings, from the one of number at on.
type refusing struct {
	verbs.QP
	at, times int
	err       error
}

func (q *refusing) PostSend(wr *verbs.SendWR) error {
	if q.at--; q.at <= 0 && q.times > 0 {
		q.times--
		return q.err
	}
	return q.QP.PostSend(wr)
}

// A bundle that the device has no room for, or refuses, fails as its messages would: they go later,
// or each is answered.
func TestBundlesThatAreRefused(t *testing.T) {
	for name, err := range map[string]error{"no room": unix.ENOMEM, "refused": unix.EIO} {
		t.Run(name, func(t *testing.T) {
			onAllKinds(t, func(w *world) {
				p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 64})
				w.onLoop(w.rt, func(l *loop) {
					c := w.conn(l, p.c)
					c.QP = &refusing{c.QP, 2, 1, err}
				})
				p.client.reactWith(func(ctx actor.Context) {
					if _, ok := ctx.Message().(string); ok {
						for i := range 5 {
							s := NewSend([]byte{byte(i)})
							s.Notify = true
							ctx.Request(p.c, s)
						}
					}
				})
				w.sys.Root.Send(p.client.pid, "go")
				next[string](p.client)
				time.Sleep(time.Second)
				if errors.Is(err, unix.ENOMEM) {
					for i := range 5 {
						if g := p.server.any(); g.data != string([]byte{byte(i)}) {
							w.Errorf("message %d is %v", i, g)
						}
						next[*Sent](p.client)
					}
					w.closes(p)
					return
				}
				sent, failed := 0, 0
				p.client.send(p.c, &DestroyID{})
				for _, g := range until[*Closed](p.client) {
					switch m := g.msg.(type) {
					case *Sent:
						sent++
					case *SendFailed:
						if failed++; !errors.Is(m.Err, ErrFlushed) || !errors.Is(m.Err, err) {
							w.Errorf("failed with %v", m.Err)
						}
					case *Closed:
						if m.Unsent != 4 || m.Unknown+m.Delivered != 1 {
							w.Errorf("the end: %v", g)
						}
					}
				}
				if sent != 1 || failed != 4 {
					w.Errorf("%d are sent and %d have failed", sent, failed)
				}
				until[*Closed](p.server)
			})
		})
	}
}

// A sealed record leaves when the device has room again, also if the sends in flight before it
// complete without a notification.
func TestBundlesThatAreOwed(t *testing.T) {
	onAllKinds(t, func(w *world) {
		cfg := secured(w)
		cfg.MaxMessage, cfg.Credits = 1<<10, 64
		p := w.connect(cfg)
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, p.c)
			c.QP = &refusing{c.QP, 3, 4, unix.ENOMEM}
		})
		var messages [][]byte
		for i := range 5 {
			messages = append(messages, pattern(400, i))
		}
		w.submitted(w.rt, p.c, messages...) // one, and two bundles
		time.Sleep(time.Second)
		for i, m := range messages {
			if g := p.server.any(); g.data != string(m) {
				w.Fatalf("message %d is %v", i, g)
			}
		}
		w.closes(p)
	})
}

// The messages of bundles count in a turn of the loop: whatever a peer bundles, other work of the
// loop waits for as many messages as that of one connection in a turn, not for all.
func TestBundlesShareTheLoop(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		const bundles, turn = 20, 2 << 10
		server := w.farProbe()
		w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: bundles * wire.MaxBundle})
		mallory, id, s, _ := w.peerOf(server, 5)
		came, between := 0, 0
		owner := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*Received); !ok {
				return
			}
			if came++; came == 1 {
				_ = w.far.loops[0].el.Post(func() { between = came })
			}
		}, w.far.OnLoop()))
		server.send(s, &Handover{To: owner})
		next[*Done](server)
		settle()
		w.whileBlocked(w.far, func() {
			for range bundles {
				mallory.send(id, NewSend(bundleOf(make([]string, wire.MaxBundle)...)))
			}
		})
		settle()
		if came != bundles*wire.MaxBundle || between > turn+wire.MaxBundle {
			w.Errorf("%d messages came, and %d before other work", came, between)
		}
		mallory.send(id, &Disconnect{})
		until[*Closed](mallory)
	})
}
