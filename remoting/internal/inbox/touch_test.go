package inbox

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// narrow has room for 4 messages of 1,000 bytes to one target, with a Touch behind every 2.
var narrow = Config{Window: 4 * (1000 + overhead)}

// touched are the kinds of actors whose consumption Touch shows.
var touchedKinds = []string{"default", "lock-free", "with mailbox middleware", "with a dispatcher", "with priorities"}

// inTouched runs a test for each of them.
func inTouched(t *testing.T, cfg Config, test func(r *rig, opts []actor.PropsOption)) {
	t.Helper()
	for _, name := range touchedKinds {
		t.Run(name, func(t *testing.T) {
			inRig(t, cfg, func(r *rig) { test(r, homes[name](r.Runtime())) })
		})
	}
}

// quiet checks that no dead letter is about the inbox's own messages.
func (r *rig) quiet() {
	r.t.Helper()
	for _, d := range r.deadLetters() {
		switch d.Message.(type) {
		case *note, *actor.Watch, *actor.PoisonPill:
		default:
			r.t.Errorf("a dead letter: %T to %v", d.Message, d.PID)
		}
	}
}

// There is a Touch behind each half of a window, and no other: an actor sees it as any other Touch.
// OnLoop and OffLoop mailboxes need none.
func TestTouchBehindHalfAWindow(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		for _, m := range notes(40) {
			r.deliver(a.pid, 1000, m)
		}
		a.wantNotes(r, "all", 40)
		want := 0
		r.do(func(in *Inbox) {
			if in.lines["a"].route.touches {
				want = 20
			}
		})
		if a.touches != want {
			r.t.Errorf("%d Touches for 40 messages, want %d", a.touches, want)
		}
		r.quiet()
	})
}

// A burst that is larger than the window arrives in order.
func TestTouchInABurst(t *testing.T) {
	inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		r.deliver(a.pid, 1000, notes(100)...)
		a.wantNotes(r, "without time passing", 100)
		r.quiet()
	})
}

// How an actor sees a Touch: as the message, with a sender that it may answer, too. Also a receiver
// middleware sees it. All types are Proto.Actor's; the inbox sends no message of a type that an
// actor cannot know.
func TestTouchAsActorsSeeIt(t *testing.T) {
	inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
		var seen []string
		middleware := func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
				switch env.Message.(type) {
				case *note, *actor.Touch, actor.SystemMessage, actor.AutoReceiveMessage:
				default:
					seen = append(seen, "something else")
				}
				next(ctx, env)
			}
		}
		a := r.spawnReceiver("a", func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Touch); ok {
				seen = append(seen, ctx.Sender().Id)
			}
		}, append(opts, actor.WithReceiverMiddleware(middleware))...)
		r.deliver(a.pid, 1000, notes(4)...)
		a.wantNotes(r, "all", 4)
		if got := strings.Join(seen, " "); got != Name+" "+Name {
			r.t.Errorf("seen of the Touches: %s", got)
		}
		r.quiet()
	})
}

// Two links of one system have one process for the answers to Touch.
func TestTouchForTwoInboxes(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		first := r.link
		r.spawn(narrow)
		a := r.spawnTarget("a")
		r.deliver(a.pid, 1000, notes(50)...)
		a.wantNotes(r, "by the second inbox", 50)
		r.System().Root.Stop(first)
	})
}

// Whatever an actor does with a Touch: as long as it returns from it, it goes on.
func TestTouchAndWhatActorsDo(t *testing.T) {
	for name, do := range map[string]func(ctx actor.Context, other *actor.PID){
		"answers":  func(ctx actor.Context, _ *actor.PID) { ctx.Respond(&note{}) },
		"echoes":   func(ctx actor.Context, _ *actor.PID) { ctx.Respond(ctx.Message()) },
		"forwards": func(ctx actor.Context, other *actor.PID) { ctx.Forward(other) },
		"stashes":  func(ctx actor.Context, _ *actor.PID) { ctx.Stash() },
		"becomes": func(ctx actor.Context, _ *actor.PID) {
			b := actor.NewBehavior()
			b.Become(func(actor.Context) {})
			b.Receive(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
				other := r.spawnTarget("other")
				a := r.spawnReceiver("a", func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Touch); ok {
						do(ctx, other.pid)
					}
				}, opts...)
				r.deliver(a.pid, 1000, notes(50)...)
				a.wantNotes(r, name, 50)
				r.quiet()
			})
		})
	}
}

// An actor that fails now and then is restarted by its supervisor, and goes on with the rest.
func TestTouchAcrossRestarts(t *testing.T) {
	inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnReceiver("a", func(ctx actor.Context) {
			if m, ok := ctx.Message().(*note); ok && m.n%7 == 3 {
				panic("as the test wants")
			}
		}, opts...)
		for range 7 {
			r.ExpectPanic("as the test wants")
		}
		r.deliver(a.pid, 1000, notes(50)...)
		a.wantNotes(r, "with restarts", 50)
		r.quiet()
	})
}

// A Touch at which the actor fails is not answered; another one follows.
func TestTouchIsLost(t *testing.T) {
	inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
		failed := 0
		a := r.spawnReceiver("a", func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Touch); ok && failed < 3 {
				failed++
				panic("as the test wants")
			}
		}, opts...)
		for range 3 {
			r.ExpectPanic("as the test wants")
		}
		r.deliver(a.pid, 1000, notes(50)...)
		r.Advance(time.Minute)
		a.wantNotes(r, "after lost Touches", 50)
		r.quiet()
	})
}

// Answers may come in any order, and more than once.
func TestAnswersInAnyOrder(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		a := r.spawnTarget("a")
		a.suspend()
		r.deliver(a.pid, 1000, notes(4)...)
		r.do(func(in *Inbox) {
			to := in.lines["a"].route
			if len(to.marks) != 2 {
				r.t.Errorf("%d Touches", len(to.marks))
				return
			}
			first, second := *to.marks[0], *to.marks[1]
			for _, m := range []mark{second, second, first} {
				in.answers.SendUserMessage(&actor.PID{Id: Name, RequestId: m.id}, &actor.Touched{})
				if got := to.done.Load(); got != second.upTo {
					r.t.Errorf("%d bytes consumed, want %d", got, second.upTo)
				}
			}
		})
	})
}

// await reports if there is nothing to wait for.
func TestAwaitWhatIsThere(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		a := r.spawnTarget("a", r.Runtime().OffLoop())
		a.suspend()
		r.deliver(a.pid, 1000, notes(2)...)
		r.do(func(in *Inbox) {
			to := in.lines["a"].route
			if to.awaitConsumed() || to.wake.Load() == never {
				r.t.Error("nothing was consumed")
			}
			to.countConsumed(to.sent / 2)
			if to.wake.Load() != never || !in.woken.Load() {
				r.t.Error("the inbox is not woken")
			}
			if !to.awaitConsumed() || to.wake.Load() != never {
				r.t.Error("half was consumed")
			}
			to.done.Add(-to.sent / 2)
		})
		a.resume()
		r.Wait()
	})
}

// A target that was refused, and whose Touches were lost, gets messages again after another one.
func TestTouchOfARefusedActor(t *testing.T) {
	cfg := Config{Window: narrow.Window, Bytes: 10 * (1000 + overhead)}
	inTouched(t, cfg, func(r *rig, opts []actor.PropsOption) {
		failing := true
		a := r.spawnReceiver("a", func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Touch); ok && failing {
				panic("as the test wants")
			}
		}, opts...)
		for range 4 { // two Touches of messages, one after a while, one when it is sent something
			r.ExpectPanic("as the test wants")
		}
		a.suspend()
		r.deliver(a.pid, 1000, notes(10)...)
		r.Advance(defaultPatience + time.Second)
		r.deliver(a.pid, 1000, &note{})
		if n := len(r.refusals()); n != 7 {
			r.t.Fatalf("%d refused, want 7", n)
		}
		a.resume()
		r.Wait()
		r.deliver(a.pid, 1000, &note{}) // it has failed at all Touches
		if n := len(r.refusals()); n != 8 {
			r.t.Fatalf("%d refused, want 8", n)
		}
		failing = false
		r.Advance(2 * time.Minute)
		r.deliver(a.pid, 1000, &note{}) // is refused, and another Touch is sent
		r.deliver(a.pid, 1000, &note{4})
		a.wantNotes(r, "after another Touch", 5)
	})
}

// A suspended actor has what fits into its window, and the rest when it goes on.
func TestTouchOfASuspendedActor(t *testing.T) {
	inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		a.suspend()
		r.deliver(a.pid, 1000, notes(50)...)
		r.Advance(time.Hour) // many Touches are tried, later and later
		a.wantNotes(r, "suspended", 0)
		r.do(func(in *Inbox) {
			l := in.lines["a"]
			if n := len(l.route.marks); n == 0 || n > mostMarks {
				r.t.Errorf("%d Touches wait for their answer", n)
			}
			if n := len(in.answers.out); n > mostMarks {
				r.t.Errorf("%d Touches are kept", n)
			}
			if l.route.inFlight() > in.window || l.waiting.Len() < 40 {
				r.t.Errorf("%d bytes in flight, %d messages wait", l.route.inFlight(), l.waiting.Len())
			}
		})
		a.resume()
		r.Advance(time.Minute)
		a.wantNotes(r, "resumed", 50)
		if a.touches > 100 {
			r.t.Errorf("%d Touches in an hour", a.touches)
		}
		r.quiet()
	})
}

// An actor that stops answers no Touch: its waiting messages are dead letters, and no message of
// the inbox is one. The next actor of the name gets the messages that arrive later.
func TestTouchOfAStoppedActor(t *testing.T) {
	for name, stop := range map[string]func(r *rig, a *target){
		"Stop": func(r *rig, a *target) {
			a.suspend()
			r.deliver(a.pid, 1000, notes(50)...)
			r.System().Root.Stop(a.pid)
			a.resume()
		},
		"PoisonPill": func(r *rig, a *target) {
			a.suspend()
			r.deliver(a.pid, 1000, notes(50)[:2]...)
			r.deliver(a.pid, 1000, &actor.PoisonPill{})
			r.deliver(a.pid, 1000, notes(50)[2:]...)
			a.resume()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
				a := r.spawnTarget("a", opts...)
				stop(r, a)
				r.Advance(soon)
				dead := 0
				for _, d := range r.deadLetters() {
					if _, ok := d.Message.(*note); ok {
						dead++
					}
				}
				if dead < 40 {
					r.t.Errorf("%d dead letters", dead)
				}
				r.quiet()
				r.do(func(in *Inbox) {
					if n := len(in.answers.out); n != 0 {
						r.t.Errorf("%d Touches are kept of an actor that is gone", n)
					}
				})
				b := r.spawnTarget("a", opts...)
				r.deliver(b.pid, 1000, notes(20)...)
				b.wantNotes(r, "the successor", 20)
			})
		})
	}
}

// When the inbox is closed, the answers that still come mean nothing to anybody.
func TestTouchIsAnsweredAfterClose(t *testing.T) {
	inTouched(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		a.suspend()
		r.deliver(a.pid, 1000, notes(50)...)
		r.do(func(in *Inbox) {
			in.Close()
			if n := len(in.answers.out); n != 0 {
				r.t.Errorf("%d Touches are kept", n)
			}
		})
		r.System().Root.Stop(r.link)
		a.resume()
		r.Wait()
		if n := len(a.notes()) + len(r.refusals()); n != 50 {
			r.t.Errorf("%d received, %d refused, of 50", len(a.notes()), len(r.refusals()))
		}
		r.quiet()
		r.spawn(narrow)
	})
}
