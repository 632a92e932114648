package inbox

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// slowly makes an actor that takes so long for each note.
func (r *rig) slowly(name string, d time.Duration, opts ...actor.PropsOption) *target {
	return r.spawnReceiver(name, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*note); ok {
			time.Sleep(d)
		}
	}, opts...)
}

// A target that consumes something within Patience keeps its messages, however slow it is and
// however long the inbox is full.
func TestSlowIsNotStuck(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.slowly("a", 3*time.Second, opts...), r.spawnTarget("b", opts...)
		p := r.connect("ab")
		p.send(0, 0, 100)
		p.send(1, 0, 20)
		r.Advance(10 * time.Minute)
		a.wantNotes(r, "the slow one", 100)
		b.wantNotes(r, "the one behind it", 20)
		if n := len(r.refusals()); n != 0 {
			r.t.Errorf("%d were refused", n)
		}
	}, "on the loop")
}

// When such a target stops consuming, Patience counts from its last progress, and ends.
func TestSlowGetsStuck(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.slowly("a", 3*time.Second, opts...), r.spawnTarget("b", opts...)
		p := r.connect("ab")
		p.send(0, 0, 100)
		p.send(1, 0, 20)
		r.Advance(30 * time.Second)
		a.suspend()
		r.Advance(defaultPatience - 3*time.Second)
		if n := len(r.refusals()); n != 0 {
			r.t.Errorf("%d were refused while there was patience", n)
		}
		r.Advance(10 * time.Second)
		b.wantNotes(r, "the one behind it", 20)
		if len(r.refusals()) == 0 {
			r.t.Error("nothing was refused")
		}
		for _, f := range r.refusals() {
			if f.target != "a" || !errors.Is(f.why, ErrSlow) {
				r.t.Errorf("refused: %+v", f)
			}
		}
		a.resume()
		r.Advance(10 * time.Minute)
		if n := len(a.notes()) + len(r.refusals()); n != 100 {
			r.t.Errorf("%d were received or refused, of 100", n)
		}
	}, "on the loop", "bounded")
}

// Patience is each target's: one that progresses does not lose its messages because of one that is
// stuck, although it has more of them.
func TestOnlyTheStuckIsRefused(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.slowly("a", 3*time.Second, opts...), r.spawnTarget("b", opts...)
		b.suspend()
		p := r.connect("ab")
		p.send(1, 0, 2)
		p.send(0, 0, 60)
		r.Advance(10 * time.Minute)
		a.wantNotes(r, "the slow one", 60)
		for _, f := range r.refusals() {
			if f.target != "b" {
				r.t.Errorf("refused: %+v", f)
			}
		}
		b.resume()
		r.Advance(time.Minute)
	}, "on the loop", "bounded")
}
