package actor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// A Send that Post refuses stays the caller's, whatever the reason: the window, the send queue's
// length, a device that has no room. Posted ones are counted, and arrive once, in order. Writable
// follows whenever trying again helps.
func TestLineCountsWhatWasPosted(t *testing.T) {
	for _, fail := range []int{0, 2, 3} {
		t.Run(fmt.Sprintf("fail %d", fail), func(t *testing.T) {
			onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
				near.wr, near.fail = 20, fail
				random := rand.New(rand.NewPCG(uint64(fail), 1))
				server, client := w.farProbe(), w.probe()
				w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: 8})
				id := w.rt.CreateID(client.pid, IDConfig{MaxMessage: 1 << 10, Credits: 1})
				client.send(id, &Dial{Addr: there + ":7471"})
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				next[*Established](client)
				const messages = 200
				var line *Line
				w.onLoop(w.rt, func(l *loop) { line = &Line{w.conn(l, id)} })
				waiting := takenSend([]byte("0000"))
				for sent := 0; sent < messages; {
					refused := false
					w.onLoop(w.rt, func(*loop) {
						for n := random.IntN(12); n > 0 && sent < messages; n-- {
							if !line.Post(waiting) {
								refused = true
								return
							}
							sent++
							waiting = takenSend(fmt.Appendf(nil, "%04d%s", sent, strings.Repeat("x", random.IntN(300))))
						}
					})
					w.onLoop(w.rt, func(*loop) {
						if line.Posted() != uint64(sent) || line.Delivered() > line.Posted() {
							w.Errorf("%d posted, %d delivered; it took %d", line.Posted(), line.Delivered(), sent)
						}
					})
					if refused {
						for { // a device that had no room has reported the failure
							if _, ok := client.any().msg.(*Writable); ok {
								break
							}
						}
					}
				}
				for i := range messages {
					if g := server.any(); !strings.HasPrefix(g.data, fmt.Sprintf("%04d", i)) {
						w.Fatalf("message %d is %v", i, g)
					}
				}
			})
		})
	}
}

// After the end nothing can be posted, and the counts stay.
func TestLineAfterTheEnd(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		var line *Line
		w.onLoop(w.rt, func(l *loop) {
			line = &Line{w.conn(l, p.c)}
			if !line.Post(takenSend([]byte("x"))) {
				w.Error("refused")
			}
		})
		next[*Received](p.server)
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
		w.onLoop(w.rt, func(*loop) {
			if line.Post(takenSend([]byte("y"))) || line.Posted() != 1 || line.Delivered() != 1 {
				w.Errorf("%d posted, %d delivered", line.Posted(), line.Delivered())
			}
		})
	})
}

// The function called with the answer to a challenge may fail. No other connection loses its
// answer.
func TestChallengeWhoseCallbackFails(t *testing.T) {
	onFlavors(t, func(w *world) {
		a := w.connect()
		b := w.connectTo(a.server)
		answers := 0
		challenge := func() {
			w.onLoop(w.rt, func(l *loop) {
				for _, p := range []pair{a, b} {
					if !(&Line{w.conn(l, p.c)}).Challenge(func() { answers++; panic("for the test") }) {
						w.Error("not challenged")
					}
				}
			})
			time.Sleep(ChallengeTime)
			settle()
		}
		challenge()
		challenge()
		w.onLoop(w.rt, func(*loop) {
			if answers != 4 {
				w.Errorf("%d answers, want 4", answers)
			}
		})
	})
}

// A peer that is challenged answers, whatever the keepalive, or its connection ends: also if it
// was heard a moment before. One challenge at a time is under way.
func TestChallenge(t *testing.T) {
	for name, idle := range map[string]time.Duration{"keepalive": 0, "no keepalive": -1} {
		for _, frozen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/frozen %v", name, frozen), func(t *testing.T) {
				onFlavors(t, func(w *world) {
					p := w.connect(IDConfig{Keepalive: Keepalive{Idle: idle}})
					line, answers := (*Line)(nil), 0
					w.onLoop(w.rt, func(l *loop) { line = &Line{w.conn(l, p.c)} })
					challenge := func() (asked bool) {
						w.onLoop(w.rt, func(*loop) { asked = line.Challenge(func() { answers++ }) })
						return asked
					}
					for range 3 {
						p.server.send(p.s, NewSend([]byte("here")))
						next[*Received](p.client)
					}
					settle()
					if frozen {
						w.f.Host("far").Freeze()
						defer w.f.Host("far").Thaw()
					}
					began := time.Now()
					if !challenge() || challenge() {
						w.Error("not challenged, or twice at a time")
					}
					if frozen {
						gone(w, p.client, began, ChallengeTime*7/8, ChallengeTime*3/8)
						w.onLoop(w.rt, func(*loop) {
							if answers != 0 || line.Challenge(func() {}) {
								w.Errorf("%d answers, or challenged after the end", answers)
							}
						})
						return
					}
					time.Sleep(ChallengeTime / 4)
					settle()
					w.onLoop(w.rt, func(*loop) {
						if answers != 1 {
							w.Errorf("%d answers", answers)
						}
					})
					for n := 2; n < 30; n++ { // it has ended, and takes no part in the next
						if !challenge() {
							w.Errorf("challenge %d was not made", n)
						}
						time.Sleep(ChallengeTime / 4)
					}
					p.server.send(p.s, NewSend([]byte("still here")))
					next[*Received](p.client)
				})
			})
		}
	}
}

// A Send belongs to one caller.
func TestTake(t *testing.T) {
	s := NewSend([]byte("x"))
	if !s.Take() || s.Take() || (&Send{}).Take() {
		t.Error("taken twice, or from nowhere")
	}
	if c := s.Copy(); c == s || !c.Take() || c.Len() != 1 {
		t.Error("no copy")
	}
}

// Whatever kind of actor the user is, it gets everything in one FIFO. When it is slow with a
// message, the peer is slowed down. It may keep a message for longer than the actor in between.
func TestRelay(t *testing.T) {
	for _, kind := range []string{"on the loop", "off the loop", "elsewhere"} {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, states.IWARP, func(w *world) {
				server := w.farProbe()
				w.listen(server)
				var opts []actor.PropsOption
				switch kind {
				case "on the loop":
					opts = append(opts, w.rt.OnLoop())
				case "off the loop":
					opts = append(opts, w.rt.OffLoop())
				}
				arrived := make(chan string, 100)
				var kept []*Received
				user := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch m := ctx.Message().(type) {
					case string:
						arrived <- m + " of " + ctx.Sender().Id
					case *Received:
						arrived <- string(m.Data) + " of " + ctx.Sender().Id
						if string(m.Data) == "keep" {
							kept = append(kept, m.Retain())
						}
					}
				}, opts...))
				defer stop(w, w.sys, user)
				between := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					relay, ok := LocalOf(ctx).Relay(user)
					if !ok {
						w.Error("no relay")
					}
					switch m := ctx.Message().(type) {
					case *actor.Started:
						ctx.Send(w.rt.CreateID(ctx.Self(), IDConfig{}), &Dial{Addr: there + ":7471"})
					case *Established:
						relay.Send("up")
					case *Received:
						relay.HandOn(m)
						if string(m.Data) == "last" {
							relay.Send("down")
						}
					}
				}, w.rt.OnLoopOf(user)))
				defer stop(w, w.sys, between)
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				for _, text := range []string{"one", "keep", "last"} {
					server.send(s, NewSend([]byte(text)))
				}
				for _, want := range []string{"up", "one", "keep", "last", "down"} {
					if got := <-arrived; got != want+" of "+between.Id {
						w.Errorf("got %q, want %q", got, want)
					}
				}
				settle()
				unreleased := 1
				if kind == "elsewhere" {
					unreleased = 0 // it has a copy
				}
				if n := w.rt.Held(); n != unreleased {
					w.Errorf("%d messages are kept, want %d", n, unreleased)
				}
				if string(kept[0].Data) != "keep" {
					w.Errorf("what was kept has become %q", kept[0].Data)
				}
				if unreleased > 0 {
					kept[0].Release()
				}
			})
		})
	}
}

// A Write with an immediate has its place among the messages, which the actor with the Line counts
// alone. So it is refused.
func TestNoImmediateBesideALine(t *testing.T) {
	onImmediates(t, func(w *world) {
		g := w.granted(64)
		w.onLoop(w.rt, func(l *loop) {
			for it := range l.ids {
				if it.pid.Equal(g.c) {
					if _, ok := (Local{l: l}).Line(it.id.Handle()); !ok {
						w.Error("no Line")
					}
				}
			}
		})
		g.client.send(g.c, &Write{Memory: g.near, Length: 8, Key: g.key, HasImm: true})
		f, _ := next[*AccessError](g.client)
		is(w, f, unix.EINVAL)
		g.client.send(g.c, &Write{Memory: g.near, Length: 8, Key: g.key})
		next[*WriteDone](g.client)
	})
}
