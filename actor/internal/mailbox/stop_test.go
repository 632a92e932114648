package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/rdmactor/rdmactor/eventloop"
)

// homes are the two places where actors of this package run; a mailbox keeps its promises in both.
var homes = map[string]func(*rig) actor.PropsOption{
	"OnLoop":  (*rig).OnLoop,
	"OffLoop": (*rig).OffLoop,
}

func inBothHomes(t *testing.T, test func(t *testing.T, r *rig, home actor.PropsOption)) {
	t.Helper()
	for name, home := range homes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			test(t, r, home(r))
		})
	}
}

// inbox collects the messages of an actor that stands for a sender.
type inbox struct {
	mu  sync.Mutex
	got []any
	pid *actor.PID
	n   chan struct{}
}

func newInbox(sys *actor.ActorSystem) *inbox {
	b := &inbox{n: make(chan struct{}, 1<<16)}
	b.pid = sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started, *actor.Stopping, *actor.Stopped:
		default:
			b.mu.Lock()
			b.got = append(b.got, ctx.Message())
			b.mu.Unlock()
			b.n <- struct{}{}
		}
	}))
	return b
}

// wait waits for n more messages.
func (b *inbox) wait(n int) []any {
	for range n {
		<-b.n
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got
}

// requests sends n data messages with the inbox as their sender.
func (b *inbox) requests(sys *actor.ActorSystem, to *actor.PID, n int) {
	for i := range n {
		sys.Root.RequestWithCustomSender(to, &data{i}, b.pid)
	}
}

// held spawns an actor that handles a message until it is released, so that a queue builds
// up behind it.
func held(r *rig, home actor.PropsOption, receive func(actor.Context)) (pid *actor.PID, release func()) {
	in, gate := make(chan struct{}), make(chan struct{})
	pid = r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*control); ok {
			close(in)
			<-gate
			return
		}
		receive(ctx)
	}, home))
	r.sys.Root.Send(pid, &control{})
	<-in
	return pid, func() { close(gate) }
}

// Every message that a stopped actor had not received is answered. Proto.Actor's mailbox drops
// them silently: 1 of 10 handled, 9 vanish, no dead letter.
func TestStopAnswersTheQueue(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		sender := newInbox(r.sys)
		received := 0
		pid, release := held(r, home, func(ctx actor.Context) {
			if _, ok := ctx.Message().(*data); ok {
				received++
			}
		})
		const queued = 100 // more than one turn's budget
		holds := &holding{}
		sender.requests(r.sys, pid, queued)
		r.sys.Root.RequestWithCustomSender(pid, holds, sender.pid)
		stopped := r.sys.Root.StopFuture(pid)
		release()
		if err := stopped.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, msg := range sender.wait(queued + 1) {
			if r, ok := msg.(*actor.DeadLetterResponse); !ok || !r.Target.Equal(pid) {
				t.Fatalf("the sender got %T %v, want a DeadLetterResponse of the stopped actor", msg, msg)
			}
		}
		if received != 0 {
			t.Errorf("the actor got %d messages after it was asked to stop", received)
		}
		for holds.finished.Load() == 0 { // done comes right after the answer
			runtime.Gosched()
		}
		stop(t, r.sys, sender.pid)
	})
}

// Messages in the middle of the spawn, when the mailbox does not know its actor, wait until the
// end of it.
func TestMessagesBeforeTheEndOfTheSpawn(t *testing.T) {
	for name, want := range map[string]string{
		"Watch": "Started data Stopping Stopped Terminated",
		"Stop":  "Stopping Stopped DeadLetterResponse",
	} {
		t.Run(name, func(t *testing.T) {
			inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
				got := newInbox(r.sys)
				say := func(what string) { r.sys.Root.Send(got.pid, what) }
				watcher := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Terminated); ok {
						say("Terminated")
					}
				}))
				early := actor.WithOnInit(func(ctx actor.Context) {
					p, _ := r.sys.ProcessRegistry.GetLocal(ctx.Self().Id)
					p.SendUserMessage(ctx.Self(), &actor.MessageEnvelope{Message: &data{}, Sender: got.pid})
					if name == "Stop" {
						p.SendSystemMessage(ctx.Self(), &actor.Stop{})
					} else {
						p.SendSystemMessage(ctx.Self(), &actor.Watch{Watcher: watcher})
					}
					if len(r.loops) > 0 {
						on(t, r.loops[0], func() {}) // it would have been received by now
					}
				})
				pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					what := fmt.Sprintf("%T", ctx.Message())
					say(what[strings.LastIndexByte(what, '.')+1:])
				}, home, early))
				n := len(strings.Fields(want))
				if name == "Watch" {
					got.wait(2)
					n -= 2
					stop(t, r.sys, pid)
				}
				var all []string
				for _, msg := range got.wait(n) {
					if _, ok := msg.(*actor.DeadLetterResponse); ok {
						msg = "DeadLetterResponse"
					}
					all = append(all, msg.(string))
				}
				if s := strings.Join(all, " "); s != want {
					t.Errorf("received %s, want %s", s, want)
				}
				stop(t, r.sys, watcher, got.pid)
			})
		})
	}
}

// An actor whose supervisor stops it after a failure is suspended to the end; its queue is still
// answered.
func TestStopAfterFailureAnswersTheQueue(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		sender := newInbox(r.sys)
		stopIt := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*control); ok {
				sender.requests(r.sys, ctx.Self(), 10)
				panic("for the test")
			}
			if _, ok := ctx.Message().(*data); ok {
				t.Error("the actor received a message after its failure")
			}
		}, home, actor.WithGuardian(stopIt)))
		r.sys.Root.Send(pid, &control{})
		for _, msg := range sender.wait(10) {
			if _, ok := msg.(*actor.DeadLetterResponse); !ok {
				t.Errorf("the sender got %T, want a DeadLetterResponse", msg)
			}
		}
		stop(t, r.sys, sender.pid)
	})
}

// An actor that does not return from *actor.Stopped has still stopped: it receives nothing more,
// its queue is answered, and its mailbox is forgotten.
func TestStopThatDoesNotReturnAnswersTheQueue(t *testing.T) {
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
				sender := newInbox(r.sys)
				pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch ctx.Message().(type) {
					case *control:
						sender.requests(r.sys, ctx.Self(), 10)
						ctx.Stop(ctx.Self())
					case *data:
						t.Error("the actor received a message after it had stopped")
					case *actor.Stopped:
						leave()
					}
				}, home))
				r.sys.Root.Send(pid, &control{})
				for _, msg := range sender.wait(10) {
					if _, ok := msg.(*actor.DeadLetterResponse); !ok {
						t.Errorf("the sender got %T, want a DeadLetterResponse", msg)
					}
				}
				unboxed(r, pid)
				stop(t, r.sys, sender.pid)
			})
		})
	}
}

// A maker's leftover function answers in place of the dead letter.
func TestStopAnswersThroughLeftover(t *testing.T) {
	r := newRig(t, 1)
	var leftovers []any
	done := make(chan struct{})
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*control); ok {
			ctx.Stop(ctx.Self())
			ctx.Poison(ctx.Self()) // needs no answer: its request is fulfilled
			for n := range 3 {
				ctx.Send(ctx.Self(), &data{n})
			}
		}
	}, actor.WithMailbox(func() actor.Mailbox {
		return New(r.loops[0], &Config{}, policy{leftover: func(msg any) {
			if leftovers = append(leftovers, msg); len(leftovers) == 4 {
				close(done)
			}
		}})
	}))
	pid := r.sys.Root.Spawn(props)
	m := r.boxOf(pid)
	r.sys.Root.Send(pid, &control{})
	on(t, r.loops[0], func() { m.Deliver(&event{1}) }) // the device does not know yet
	<-done
	if diff := cmp.Diff([]string{"data 0", "data 1", "data 2", "event 1"}, names(leftovers)); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
	unboxed(r, pid)
}

// An actor with children stops after them, and answers then.
func TestStopWithChildrenAnswers(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		sender := newInbox(r.sys)
		gate := make(chan struct{})
		ready := make(chan struct{})
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Stopping); ok {
						<-gate
					}
				}))
				close(ready)
			case *data:
				ctx.Respond(ctx.Message())
			}
		}, home))
		<-ready
		stopped := r.sys.Root.StopFuture(pid)
		// received or answered: the actor stops only after its child
		sender.requests(r.sys, pid, 10)
		close(gate)
		if err := stopped.Wait(); err != nil {
			t.Fatal(err)
		}
		sender.requests(r.sys, pid, 1)
		sender.wait(11)
		unboxed(r, pid)
		stop(t, r.sys, sender.pid)
	})
}

// A nil message becomes a dead letter and the actor goes on. Proto.Actor's mailbox keeps a core
// busy forever.
func TestNilIsRefused(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		sender := newInbox(r.sys)
		var dead sync.WaitGroup
		dead.Add(2)
		sub := r.sys.EventStream.Subscribe(func(e any) {
			if d, ok := e.(*actor.DeadLetterEvent); ok && d.Message == nil {
				dead.Done()
			}
		})
		defer r.sys.EventStream.Unsubscribe(sub)
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if ctx.Message() == nil {
				t.Error("the actor got a nil message")
			}
			if d, ok := ctx.Message().(*data); ok {
				ctx.Respond(d)
			}
		}, home))
		r.sys.Root.Send(pid, nil)
		r.sys.Root.RequestWithCustomSender(pid, nil, sender.pid)
		r.sys.Root.RequestWithCustomSender(pid, &data{7}, sender.pid)
		got := sender.wait(2)
		if _, ok := got[0].(*actor.DeadLetterResponse); !ok || len(got) != 2 {
			t.Errorf("the sender got %v, want a DeadLetterResponse and its answer", got)
		}
		dead.Wait()
		m := r.registry.Find(pid)
		stop(t, r.sys, pid, sender.pid)
		if m.UserMessageCount() != 0 {
			t.Errorf("%d messages counted in the end", m.UserMessageCount())
		}
	})
}

// A panic restarts the actor; the message it failed on is gone, the rest of the queue reaches the
// new incarnation in order.
func TestRestartKeepsTheQueue(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		var got []string
		incarnation := 0
		done := make(chan struct{})
		pid := r.sys.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			incarnation++
			return actor.ReceiveFunc(func(ctx actor.Context) {
				d, ok := ctx.Message().(*data)
				if !ok {
					return
				}
				if d.n == 1 {
					panic("for the test")
				}
				if got = append(got, fmt.Sprint(d.n, " in ", incarnation)); d.n == 4 {
					close(done)
				}
			})
		}, home))
		for n := range 5 {
			r.sys.Root.Send(pid, &data{n})
		}
		<-done
		if diff := cmp.Diff([]string{"0 in 1", "2 in 2", "3 in 2", "4 in 2"}, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
		stop(t, r.sys, pid)
	})
}

// A message to an actor whose loop has ended is answered, and the actor can still be stopped.
func TestEndedLoopAnswers(t *testing.T) {
	for _, how := range []string{"StopFuture", "PoisonFuture"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, 1)
			sender := newInbox(r.sys)
			pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*data); ok {
					t.Error("an actor received a message after its loop has ended")
				}
			}, r.OnLoop()))
			shut(t, r.loops[0])
			sender.requests(r.sys, pid, 10)
			for _, msg := range sender.wait(10) {
				if _, ok := msg.(*actor.DeadLetterResponse); !ok {
					t.Errorf("the sender got %T, want a DeadLetterResponse", msg)
				}
			}
			end := r.sys.Root.StopFuture
			if how == "PoisonFuture" {
				end = r.sys.Root.PoisonFuture
			}
			if err := end(pid).Wait(); err != nil {
				t.Errorf("%s: %v", how, err)
			}
			stop(t, r.sys, sender.pid)
		})
	}
}

// A loop that is abandoned at its deadline leaves mailboxes that were queued and never run. They
// are answered too.
func TestAbandonedLoopAnswers(t *testing.T) {
	for name, early := range map[string]bool{"after its end": false, "while somebody holds it": true} {
		t.Run(name, func(t *testing.T) { abandon(t, early) })
	}
}

// abandon gives up a held loop, and buries its mailboxes before it lets go (early) or afterwards.
func abandon(t *testing.T, early bool) {
	r := newRig(t, 1)
	l := r.loops[0]
	sender := newInbox(r.sys)
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop()))
	in, gate := make(chan struct{}), make(chan struct{})
	if err := l.el.Post(func() { close(in); <-gate }); err != nil {
		t.Fatal(err)
	}
	<-in
	for range 5000 { // more than a turn runs, so that the actor's mailbox stays behind
		if err := l.el.Post(func() {}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var late *eventloop.ShutdownError
	if err := l.el.Shutdown(ctx); !errors.As(err, &late) {
		t.Fatalf("Shutdown while the loop is held: %v, want a ShutdownError", err)
	}
	sender.requests(r.sys, pid, 10) // accepted: the loop has not ended
	if early {
		r.registry.BuryAll(l)
		if l.Over() {
			t.Error("the actors were taken from a loop that has not ended")
		}
	}
	close(gate)
	shut(t, l)
	if !early {
		r.registry.BuryAll(l)
	}
	for _, msg := range sender.wait(10) {
		if _, ok := msg.(*actor.DeadLetterResponse); !ok {
			t.Errorf("the sender got %T, want a DeadLetterResponse", msg)
		}
	}
	stop(t, r.sys, pid, sender.pid)
}
