package inbox

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A name whose actor is followed by one of another kind: the successor gets later messages, and
// those that a goroutine has not yet sent to the one before, in order.
func TestSuccessors(t *testing.T) {
	for first := range homes {
		t.Run(first, func(t *testing.T) {
			inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
				a := r.spawnTarget("a", homes[first](r.Runtime())...)
				r.deliver(a.pid, 1000, notes(3)...)
				r.System().Root.Stop(a.pid)
				r.Wait()
				b := r.spawnTarget("a", opts...)
				r.deliver(b.pid, 1000, notes(30)...)
				a.wantNotes(r, "the first", 3)
				b.wantNotes(r, "the second", 30)
				r.quiet()
			})
		})
	}
}

// A process that blocks is removed, and an actor has its name now: it gets all but the message that
// the process is at.
func TestASuccessorOfAProcessThatBlocks(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		gate := make(chan struct{})
		defer close(gate)
		p := r.add(&process{name: "a", do: func(any) { <-gate }})
		r.deliver(p.pid(), 1000, notes(20)...)
		r.System().ProcessRegistry.Remove(p.pid())
		b := r.spawnTarget("a", opts...)
		r.deliver(b.pid, 1000, &note{20})
		r.Advance(soon)
		got := b.notes()
		if len(got) != 20 || got[0] != 1 || got[19] != 20 {
			r.t.Errorf("the successor got %v", got)
		}
		if len(r.refusals()) != 0 {
			r.t.Errorf("refused: %v", r.refusals())
		}
	})
}

// Messages that wait for an actor which is gone are dead letters when a new one has none of them:
// the name is unknown when their turn comes.
func TestWhatWaitsForAnActorThatIsGone(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		a.suspend()
		f := actor.NewFuture(r.System(), time.Minute)
		r.deliver(a.pid, 1000, notes(20)...)
		r.deliver(a.pid, 1000, &actor.MessageEnvelope{Message: &note{20}, Sender: f.PID()})
		r.System().Root.Stop(a.pid)
		a.resume()
		if _, err := f.Result(); !errors.Is(err, actor.ErrDeadLetter) || r.Elapsed() > soon {
			r.t.Errorf("after %v: %v", r.Elapsed(), err)
		}
		r.Wait()
		r.do(func(in *Inbox) {
			if len(in.slow) != 0 {
				r.t.Errorf("%d lines still wait", len(in.slow))
			}
		})
	}, "bounded")
}

// The same, when nothing waits in the line itself.
func TestASuccessorOfAProcessWithAShortLane(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		gate := make(chan struct{})
		defer close(gate)
		p := r.add(&process{name: "a", do: func(any) { <-gate }})
		r.deliver(p.pid(), 1000, notes(3)...)
		r.System().ProcessRegistry.Remove(p.pid())
		b := r.spawnTarget("a", opts...)
		r.deliver(b.pid, 1000, &note{3})
		if got := b.notes(); !slices.Equal(got, []int{1, 2, 3}) {
			r.t.Errorf("the successor got %v", got)
		}
	})
}

// A message to an unknown name is a dead letter, also if the name exists when its turn comes.
func TestADeadLetterStaysOne(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		gate := make(chan struct{})
		s := r.System().EventStream.Subscribe(func(e any) {
			if _, ok := e.(*actor.DeadLetterEvent); ok {
				<-gate
			}
		})
		defer r.System().EventStream.Unsubscribe(s)
		r.deliver(actor.NewPID("", "a"), 1000, notes(20)...)
		a := r.spawnTarget("a")
		r.deliver(a.pid, 1000, &note{0})
		a.wantNotes(r, "beside dead letters", 1)
		close(gate)
		r.Advance(soon)
		a.wantNotes(r, "in the end", 1)
		if n := len(r.deadLetters()); n != 20 {
			r.t.Errorf("%d dead letters, want 20", n)
		}
	})
}

// An OnLoop or OffLoop actor that is met in the middle of its spawn is known as such later.
func TestAnActorThatIsBeingSpawned(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		for name, home := range map[string]actor.PropsOption{"on": r.Runtime().OnLoop(), "off": r.Runtime().OffLoop()} {
			early := actor.WithOnInit(func(actor.Context) { r.deliver(actor.NewPID("", name), 10, &note{0}) })
			a := r.spawnTarget(name, early, home)
			a.wantNotes(r, "early", 1)
			r.deliver(a.pid, 10, &note{1})
			a.wantNotes(r, "later", 2)
			if is := r.wayTo(name); !is.Carried || is.Off {
				r.t.Errorf("%s is sent to by %+v", name, is)
			}
		}
	})
}

// Proto.Actor's own mailboxes have no dispatcher until the end of the spawn. Messages to a chosen
// name wait until then, or the actor would never run. A name that Proto.Actor has made is known to
// no peer before the actor runs.
func TestASpawnIsNotDisturbed(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		for _, name := range []string{"name", "Remote$name", "Remote$name$1"} {
			early := actor.WithOnInit(func(actor.Context) {
				r.System().Root.Send(r.link, func(in *Inbox) {
					in.DeliverSystem(actor.NewPID("", name), &actor.Unwatch{Watcher: r.link}, 10)
					in.Deliver(actor.NewPID("", name), &note{0}, 10, nil)
				})
				r.Wait()
			})
			a := r.spawnTarget(name, append(slices.Clone(opts), early)...)
			r.deliver(a.pid, 10, &note{1})
			a.wantNotes(r, "early and later", 2)
		}
		b := r.spawnTarget("name/$1", opts...)
		r.System().Root.Send(r.link, func(in *Inbox) { in.Deliver(b.pid, &note{0}, 10, nil) })
		b.wantNotes(r, "at once", 1)
		if len(r.refusals()) != 0 {
			r.t.Errorf("refused: %v", r.refusals())
		}
	})
}

// While a goroutine still sends the first messages to an actor with a default mailbox, the inbox
// finds out that it need not: the messages do not overtake each other.
func TestTheFirstMessagesKeepTheirOrder(t *testing.T) {
	r := newReal(t, Config{Window: 1 << 30, Bytes: 1 << 31}, 1)
	const n = 3000
	for range 10 {
		c := newCounter(r, n)
		r.do(func(in *Inbox) {
			for i := range n {
				in.Deliver(c.pid, &note{i}, 10, nil)
			}
		})
		<-c.done
		if c.mess.Load() {
			t.Fatal("out of order")
		}
		_ = r.sys.Root.StopFuture(c.pid).Wait()
	}
}
