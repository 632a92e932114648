package inbox

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A name whose actor is followed by one of another kind: the successor gets what comes then, and
// what a goroutine has not yet sent to the one before, in order.
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
		if len(r.refused) != 0 {
			r.t.Errorf("refused: %v", r.refused)
		}
	})
}

// Messages that wait for an actor which is gone are dead letters when a new one has none of them:
// nobody has the name when their turn comes.
func TestWhatWaitsForAnActorThatIsGone(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		a.suspend()
		f := actor.NewFuture(r.System(), time.Minute)
		r.deliver(a.pid, 1000, notes(20)...)
		r.deliver(a.pid, 1000, &actor.MessageEnvelope{Message: &note{20}, Sender: f.PID()})
		r.System().Root.Stop(a.pid)
		a.resume()
		if _, err := f.Result(); err != actor.ErrDeadLetter || r.Elapsed() > soon {
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
