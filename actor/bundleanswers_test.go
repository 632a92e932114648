package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// A sender that does not return from the answer to its message costs no other sender its answer,
// also if both were in one bundle.
func TestAnswersOfABundleBehindASenderThatLeaves(t *testing.T) {
	for what, err := range map[string]error{"sent": nil, "refused": unix.EIO} {
		for name, leave := range leavings {
			t.Run(what+"/"+name, func(t *testing.T) {
				onAllKinds(t, func(w *world) {
					p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 64})
					bad, good := w.probe(), w.probe()
					bad.reactWith(func(ctx actor.Context) {
						switch ctx.Message().(type) {
						case *Sent, *SendFailed:
							leave()
						}
					})
					w.onLoop(w.rt, func(l *loop) {
						c := w.conn(l, p.c)
						if err != nil {
							c.QP = &refusing{c.QP, 2, 1, err}
						}
						for _, from := range []*probe{good, bad, good, good} {
							s := takenSend([]byte("a"))
							s.sender = from.pid
							c.Submit(s.out.As(true, nil))
						}
					})
					time.Sleep(time.Second)
					p.client.send(p.c, &DestroyID{})
					until[*Closed](p.client)
					until[*Closed](p.server)
					settle()
					if n := len(good.got); n != 3 {
						w.Errorf("the other sender has %d answers to 3 messages", n)
					}
				})
			})
		}
	}
}

// Connections with nothing in flight take no memory to send from beyond the budget for bundles:
// small messages leave without.
func TestBundlesBeyondTheBudget(t *testing.T) {
	for name, made := range map[string]func(testing.TB) IDConfig{
		"open": func(testing.TB) IDConfig { return IDConfig{} }, "secured": func(tb testing.TB) IDConfig { return secured(tb) },
	} {
		t.Run(name, func(t *testing.T) {
			onAllKinds(t, func(w *world) {
				cfg := made(w)
				cfg.MaxMessage, cfg.Credits = 16<<10, 64
				p := w.connect(cfg)
				var kept []*Received
				p.server.reactWith(keeping(&kept))
				var all [][]byte
				for i := range 3 * 64 {
					all = append(all, []byte{byte(i), 30: 0})
				}
				w.submitted(w.rt, p.c, all...)
				settle()
				taken := 0
				w.onLoop(w.rt, func(l *loop) {
					l.SendBudget.Reclaim()
					taken = l.SendBudget.Free
					l.SendBudget.TakeLarge(taken)
				})
				beyond := 0
				for round := range 2 {
					w.onLoop(w.far, func(*loop) {
						for _, m := range kept {
							m.Release()
						}
						kept = nil
					})
					settle()
					w.onLoop(w.rt, func(l *loop) { beyond = max(beyond, -l.SendBudget.Free) })
					if len(kept) != 64 {
						w.Errorf("round %d: %d messages came", round, len(kept))
					}
				}
				if beyond > 0 {
					w.Errorf("%d bytes beyond the budget", beyond)
				}
				w.onLoop(w.rt, func(l *loop) { l.SendBudget.GiveLarge(taken) })
				p.server.reactWith(func(actor.Context) {})
				w.onLoop(w.far, func(*loop) {
					for _, m := range kept {
						m.Release()
					}
				})
				settle()
				w.closes(p)
			})
		})
	}
}

// The message behind a bundle may be an offer that has to wait. The bundle completes nevertheless.
func TestBundleBeforeAnOfferThatWaits(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		p := w.connect(IDConfig{Credits: 64})
		taken := 0
		w.onLoop(w.rt, func(l *loop) {
			taken = l.HeldBudget.Free
			l.HeldBudget.TakeLarge(taken)
		})
		w.submitted(w.rt, p.c, []byte("first"), []byte("second"), []byte("third"), pattern(1500, 1))
		for _, want := range []string{"first", "second", "third"} {
			if g := p.server.any(); g.data != want {
				w.Fatalf("got %v, want %q", g, want)
			}
		}
		time.Sleep(time.Second)
		w.onLoop(w.rt, func(l *loop) {
			if n := w.conn(l, p.c).Counts(); n.Queued != 1 || n.InFlight != 0 {
				w.Errorf("while the offer waits: %+v", n)
			}
			l.HeldBudget.GiveLarge(taken)
		})
		next[*Received](p.server)
		w.closes(p)
	})
}

// Messages do not wait for the operations in flight, of which the device has many and of whose
// memory bundles take none.
func TestBundlesBehindOperations(t *testing.T) {
	onFlavors(t, func(w *world) {
		r := w.reach(1<<10, IDConfig{Credits: 64})
		w.f.Delay(time.Second)
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, r.c)
			for range 40 {
				if err := c.OneSided(r.op(verbs.Write, 0, 1)); err != nil {
					w.Error(err)
				}
			}
			for _, m := range []string{"first", "second"} {
				c.Submit(&takenSend([]byte(m)).out)
			}
		})
		if d := elapsed(func() {
			for _, want := range []string{"first", "second"} {
				if g := r.server.any(); g.data != want {
					w.Fatalf("got %v, want %q", g, want)
				}
			}
		}); d > 1500*time.Millisecond {
			w.Errorf("the messages came after %v", d)
		}
		time.Sleep(time.Minute)
		w.f.Delay(0)
		r.client.send(r.c, &DestroyID{})
		until[*Closed](r.client)
		until[*Closed](r.server)
	})
}
