package actor

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/states"
)

// onOwners runs test for owners on the loop and off it, which decide how they use their messages.
func onOwners(t *testing.T, test func(w *world, owner func(receive actor.ReceiveFunc, p pair))) {
	t.Helper()
	for _, name := range []string{"on the loop", "off the loop"} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				test(w, func(receive actor.ReceiveFunc, p pair) {
					owner := w.sys.Root.Spawn(actor.PropsFromFunc(receive, wheres(w.far)[name]))
					p.server.send(p.s, &Handover{To: owner})
					next[*Done](p.server)
				})
			})
		})
	}
}

// An owner that retains most of its window consumes the rest of it as it comes. Its peer learns
// of that, although half of the window is never free.
func TestCreditsOfAnOwnerThatRetains(t *testing.T) {
	for _, c := range []struct{ retains, credits int }{
		{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}, {2, 4}, {3, 4}, {16, 32}, {17, 32}, {31, 32},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.retains, c.credits), func(t *testing.T) {
			onOwners(t, func(w *world, owner func(actor.ReceiveFunc, pair)) {
				messages := 5 * c.credits
				p := w.connect(IDConfig{Credits: c.credits})
				come := make(chan *Received, messages)
				owner(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok {
						if len(come) < c.retains {
							m.Retain()
						}
						come <- m
					}
				}, p)
				took := elapsed(func() {
					for range messages {
						p.client.send(p.c, NewSend([]byte("x")))
					}
					for settle(); len(come) < messages; settle() {
						time.Sleep(time.Millisecond)
					}
				})
				if took > 10*time.Millisecond {
					w.Errorf("%d messages take %v", messages, took)
				}
				for range c.retains {
					(<-come).Release()
				}
			})
		})
	}
}

// Messages that an owner releases after it has retained its whole window return their credits
// immediately, one by one.
func TestCreditsReleasedOneByOne(t *testing.T) {
	onOwners(t, func(w *world, owner func(actor.ReceiveFunc, pair)) {
		const credits, messages = 8, 24
		p := w.connect(IDConfig{Credits: credits})
		come := make(chan *Received, messages)
		owner(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				come <- m.Retain()
			}
		}, p)
		for range messages {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		settle()
		for released := range messages {
			if want := min(credits, messages-released); len(come) != want {
				w.Fatalf("after %d releases it has %d messages, want %d", released, len(come), want)
			}
			(<-come).Release()
			settle()
		}
	})
}

// To an owner that retains nothing credit updates are as few as they can be: one for each half of
// the window where messages go one way, and for calls hardly any, because answers state as much.
func TestCreditUpdatesOfAnOwnerThatRetainsNothing(t *testing.T) {
	const messages = 192
	for _, c := range []struct{ credits, oneWay, calls int }{
		{1, messages, messages}, {2, messages, messages}, {3, messages / 2, 0}, {4, messages / 2, 0}, {32, messages / 16, 0},
	} {
		t.Run(fmt.Sprint(c.credits), func(t *testing.T) {
			onFlavors(t, func(w *world) {
				p := w.connect(IDConfig{Credits: c.credits})
				for range messages {
					p.client.send(p.c, NewSend([]byte("x")))
				}
				settle()
				if n := updatesOf(w, p); n != c.oneWay {
					w.Errorf("%d credit updates for %d messages one way, want %d", n, messages, c.oneWay)
				}
				p.server.reactWith(func(ctx actor.Context) { ctx.Respond(NewSend([]byte("y"))) })
				for range messages {
					p.client.send(p.c, NewSend([]byte("x")))
					next[*Received](p.client)
				}
				settle()
				if n := updatesOf(w, p) - c.oneWay; n != c.calls {
					w.Errorf("%d credit updates for %d calls, want %d", n, messages, c.calls)
				}
			})
		})
	}
}

// updatesOf returns how many credit updates the client has received.
func updatesOf(w *world, p pair) (n int) {
	w.onLoop(w.rt, func(l *loop) { n = int(w.conn(l, p.c).Session.Beats()) })
	return n
}

// An owner that is only slow, and for which messages wait, returns half of the credits at a time,
// as before. But if it is very slow, the peer gets the free ones after a millisecond.
func TestCreditsOfASlowOwner(t *testing.T) {
	onFlavors(t, func(w *world) {
		const credits, messages = 8, 24
		p := w.connect(IDConfig{Credits: credits})
		come, goOn := 0, make(chan struct{})
		owner := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*Received); ok {
				come++
				<-goOn
			}
		}, w.far.OffLoop()))
		p.server.send(p.s, &Handover{To: owner})
		next[*Done](p.server)
		for range messages {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		settle()
		for consumed := 1; consumed <= credits; consumed++ {
			goOn <- struct{}{}
			settle()
			if n, want := updatesOf(w, p), consumed/(credits/2); n != want {
				w.Fatalf("%d credit updates after %d messages of a window of %d, want %d", n, consumed, credits, want)
			}
		}
		goOn <- struct{}{}
		settle()
		before := updatesOf(w, p)
		time.Sleep(time.Millisecond)
		settle()
		if n := updatesOf(w, p) - before; n != 1 {
			w.Errorf("%d credit updates a millisecond after a message was consumed, want 1", n)
		}
		close(goOn)
		settle()
		if come != messages {
			w.Errorf("%d of %d messages have come", come, messages)
		}
	})
}

// So it is behind an owner that hands messages on.
func TestCreditsOfASlowOwnersOwner(t *testing.T) {
	onFlavors(t, func(w *world) {
		const credits = 8
		p := w.connect(IDConfig{Credits: credits})
		goOn := make(chan struct{})
		slow := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*Received); ok {
				<-goOn
			}
		}, w.far.OffLoop()))
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				relay, _ := LocalOf(ctx).Relay(slow)
				relay.HandOn(m)
			}
		})
		for range credits {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		settle()
		goOn <- struct{}{}
		settle()
		if n := updatesOf(w, p); n != 0 {
			w.Errorf("%d credit updates after one message of a window of %d", n, credits)
		}
		close(goOn)
		settle()
	})
}

// A raw peer has a window instead of credits. It does not wait either until half of it is free.
func TestRawWindowOfAnOwnerThatRetains(t *testing.T) {
	for _, name := range []string{"on the loop", "off the loop"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, states.IWARP, func(w *world) {
				const credits, messages = 8, 24
				p := w.connect(IDConfig{Credits: credits, Raw: true})
				come := make(chan *Received, messages)
				owner := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok {
						come <- m.Retain()
					}
				}, wheres(w.far)[name]))
				p.server.send(p.s, &Handover{To: owner})
				next[*Done](p.server)
				for range messages {
					p.client.send(p.c, NewSend([]byte("x")))
				}
				settle()
				for released := range messages { // the device may have been delivering a few more
					if want := min(credits, messages-released); len(come) < want {
						w.Errorf("after %d releases it has %d messages, want %d or more", released, len(come), want)
					}
					(<-come).Release()
					settle()
				}
			})
		})
	}
}

// Credits for a peer that receives nothing wait until the device has room for them, and cost the
// loop nothing while they wait.
func TestCreditsWaitForRoom(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		const credits = 3 * datapath.SendDepth // the client has no update to send
		p := w.connect(IDConfig{Credits: credits})
		come := make(chan *Received, credits+1)
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				come <- m.Retain()
			}
		})
		for range credits {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		settle()
		p.client.send(p.c, NewSend([]byte("the next")))
		settle()
		w.f.Delay(2 * time.Second)
		for range datapath.SendDepth {
			p.server.send(p.s, NewSend([]byte("y")))
			settle() // each in a separate Send
		}
		(<-come).Release()
		time.Sleep(5 * time.Millisecond)
		w.onLoop(w.far, func(l *loop) {
			if c := w.conn(l, p.s); c.Out.Flight.Len() < c.Out.Flight.Depth {
				w.Errorf("%d are under way of %d", c.Out.Flight.Len(), c.Out.Flight.Depth)
			}
		})
		before := w.far.loops[0].el.Stats().Turns
		time.Sleep(time.Second)
		if n := w.far.loops[0].el.Stats().Turns - before; n > 10 {
			w.Errorf("the loop has taken %d turns in a second", n)
		}
		if n := len(come); n != credits-1 {
			w.Errorf("%d messages have come", n)
		}
		time.Sleep(10 * time.Second)
		settle()
		if n := len(come); n != credits {
			w.Errorf("%d messages have come in the end, want %d", n, credits)
		}
		for len(come) > 0 {
			(<-come).Release()
		}
	})
}
