package inbox

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// When the peer has left, waiting messages reach targets that consume; those that consume nothing
// for Patience lose theirs.
func TestPeerHasLeft(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.slowly("a", 3*time.Second, opts...), r.spawnTarget("b", opts...)
		b.suspend()
		r.deliver(a.pid, 1000, notes(40)...)
		r.deliver(b.pid, 1000, notes(40)...)
		r.do(func(in *Inbox) { in.Leave() })
		r.Advance(10 * time.Minute)
		a.wantNotes(r, "the slow one", 40)
		n := len(r.refusals())
		for _, f := range r.refusals() {
			if f.target != "b" || !errors.Is(f.why, ErrSlow) {
				r.t.Errorf("refused: %+v", f)
			}
		}
		r.do(func(in *Inbox) {
			if in.Backlog() != 0 {
				r.t.Errorf("%d bytes wait", in.Backlog())
			}
		})
		b.resume()
		r.Advance(time.Minute)
		b.wantNotes(r, "what it had", 40-n)
		if n == 0 {
			r.t.Error("nothing was refused")
		}
	}, "on the loop", "bounded")
}

// Trim refuses the latest messages in the lines with the most.
func TestTrim(t *testing.T) {
	inRig(t, Config{Window: 8 << 10}, func(r *rig) {
		a, b := r.spawnTarget("a", r.Runtime().OffLoop()), r.spawnTarget("b", r.Runtime().OffLoop())
		a.suspend()
		b.suspend()
		r.deliver(a.pid, 1000, notes(40)...)
		r.deliver(b.pid, 1000, notes(10)...)
		r.do(func(in *Inbox) { in.Trim(20 << 10) })
		n := len(r.refusals())
		for i, f := range r.refusals() {
			if f.target != "a" || f.msg.(*note).n != 39-i || !errors.Is(f.why, ErrLeft) {
				r.t.Errorf("refused: %+v", f)
			}
		}
		a.resume()
		b.resume()
		a.wantNotes(r, "what it has kept", 40-n)
		b.wantNotes(r, "what is little", 10)
		if n == 0 {
			r.t.Error("nothing was refused")
		}
	})
}

// Trim keeps its bound also for messages to a target that blocks the goroutine that sends them. It
// refuses the others, the last ones first.
func TestTrimOfATargetThatBlocks(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		gate := make(chan struct{})
		p := r.add(&process{name: "a", do: func(any) { <-gate }})
		r.deliver(p.pid(), 1000, notes(40)...)
		const most = 10 << 10
		r.do(func(in *Inbox) {
			before := in.Backlog()
			in.Trim(most)
			if n := in.Backlog(); n > most || n < most-2000 || before < 39*1000 {
				r.t.Errorf("%d bytes of %d are left", n, before)
			}
		})
		n := len(r.refusals())
		for i, f := range r.refusals() {
			if f.msg.(*note).n != 39-i || !errors.Is(f.why, ErrLeft) {
				r.t.Errorf("refused: %+v", f)
			}
		}
		close(gate)
		r.Advance(time.Second)
		if got := len(p.notes()); n == 0 || got != 40-n {
			r.t.Errorf("%d were refused, and %d of 40 received", n, got)
		}
		r.do(func(in *Inbox) {
			if n := in.Backlog(); n != 0 {
				r.t.Errorf("%d bytes are left", n)
			}
		})
	})
}
