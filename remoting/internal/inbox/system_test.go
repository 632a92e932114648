package inbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Watch and Stop reach every kind of actor, also one that has more to consume than its window.
func TestSystemMessages(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		terminated := 0
		watcher := r.spawnReceiver("watcher", func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Terminated); ok {
				terminated++
			}
		})
		a := r.spawnTarget("a", opts...)
		gate := make(chan struct{})
		blocked := r.spawnReceiver("blocked", func(ctx actor.Context) {
			if m, ok := ctx.Message().(*note); ok && m.n == 0 {
				<-gate
			}
		}, r.Runtime().OffLoop())
		r.deliver(blocked.pid, 1000, notes(20)...)
		for range 2 { // the first one may go off the loop
			r.deliver(a.pid, 1000, &note{0})
			r.do(func(in *Inbox) {
				in.DeliverSystem(a.pid, &actor.Watch{Watcher: watcher.pid}, 10)
				in.DeliverSystem(a.pid, &actor.Unwatch{Watcher: watcher.pid}, 10)
			})
		}
		r.do(func(in *Inbox) {
			in.DeliverSystem(a.pid, &actor.Watch{Watcher: watcher.pid}, 10)
			in.DeliverSystem(a.pid, &actor.Stop{}, 10)
			in.DeliverSystem(blocked.pid, &actor.Stop{}, 10)
		})
		if terminated != 1 {
			r.t.Errorf("Terminated came %d times, want once", terminated)
		}
		close(gate)
		r.Wait()
		if got := blocked.notes(); len(got) != 1 {
			r.t.Errorf("Stop came behind %d messages, want 1", len(got))
		}
		r.Advance(soon)
		r.quiet()
	})
}

// A Watch of an unknown name is answered immediately.
func TestWatchOfNobody(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		var why *actor.Terminated
		watcher := r.spawnReceiver("watcher", func(ctx actor.Context) {
			if m, ok := ctx.Message().(*actor.Terminated); ok {
				why = m
			}
		})
		r.do(func(in *Inbox) {
			in.DeliverSystem(actor.NewPID("", "nobody"), &actor.Watch{Watcher: watcher.pid}, 10)
		})
		if why == nil || why.Why != actor.TerminatedReason_NotFound {
			r.t.Errorf("got %v", why)
		}
	})
}

// System messages without an end are refused before they fill the memory, for one target and for
// all; messages are accepted again when the targets have continued.
func TestAFloodOfSystemMessages(t *testing.T) {
	inHomes(t, Config{Window: 4 << 10, Bytes: 20 << 10}, func(r *rig, opts []actor.PropsOption) {
		var all []*target
		for i := range 10 {
			a := r.spawnTarget(fmt.Sprint("a", i), opts...)
			r.deliver(a.pid, 1, &note{0})
			a.suspend()
			all = append(all, a)
		}
		r.Wait()
		flood := func() {
			for _, a := range all {
				for range 1000 {
					r.in.DeliverSystem(a.pid, &actor.Watch{Watcher: a.pid}, 10)
				}
			}
		}
		r.do(func(in *Inbox) {
			flood()
			if in.pending > 2*in.bytes+200 {
				r.t.Errorf("%d bytes are pending", in.pending)
			}
			for _, f := range r.refusals() {
				if !errors.Is(f.why, ErrSlow) {
					r.t.Errorf("refused: %+v", f)
				}
			}
			if len(r.refusals()) < 9000 {
				r.t.Errorf("%d refused", len(r.refusals()))
			}
		})
		for _, a := range all {
			a.resume()
		}
		r.Advance(time.Minute)
		before := len(r.refusals())
		r.do(func(in *Inbox) { in.DeliverSystem(all[0].pid, &actor.Watch{Watcher: all[0].pid}, 10) })
		if n := len(r.refusals()) - before; n != 0 {
			r.t.Errorf("then %d refused", n)
		}
	}, "with mailbox middleware", "with a dispatcher", "with priorities", "bounded")
}

// One target's system messages are refused beyond two windows, until it has consumed some.
func TestAFloodOfSystemMessagesForOne(t *testing.T) {
	inHomes(t, Config{Window: 4 << 10}, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		r.deliver(a.pid, 1, &note{0})
		flood := func(in *Inbox) {
			for range 1000 {
				in.DeliverSystem(a.pid, &actor.Watch{Watcher: a.pid}, 10)
			}
		}
		a.suspend()
		r.do(flood)
		n := len(r.refusals())
		if n < 900 {
			r.t.Errorf("%d refused", n)
		}
		a.resume()
		r.Wait()
		r.do(flood)
		// Off the loop it consumes beside the flood, and may keep up with all of it.
		if k := len(r.refusals()) - n; k == 1000 {
			r.t.Errorf("then all of 1000 are refused")
		}
	}, "with mailbox middleware", "with a dispatcher", "with priorities", "bounded")
}

// Unknown names, and actors that come and go, do not add up.
func TestAFloodOfNames(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		r.do(func(in *Inbox) {
			for i := range 10000 {
				in.Deliver(actor.NewPID("", fmt.Sprint("nobody", i)), &note{}, 10, nil)
			}
			if n := len(in.lines); n != 0 {
				r.t.Errorf("%d lines for names that nobody has", n)
			}
		})
		r.Advance(soon)
		if n := len(r.deadLetters()); n != 10000 {
			r.t.Errorf("%d dead letters, want 10000", n)
		}
		for i := range 1000 {
			a := r.spawnTarget(fmt.Sprint("a", i))
			r.deliver(a.pid, 10, &note{})
			a.wantNotes(r, "one of many", 1)
			r.System().Root.Stop(a.pid)
		}
		r.do(func(in *Inbox) {
			if n := len(in.lines); n > 2*fewLines || len(in.order) != n+1 {
				r.t.Errorf("%d lines, %d in order, for actors that are gone", n, len(in.order))
			}
		})
	})
}

// Actors that live on, and are sent something now and then, have lines without a bound other than
// their number.
func TestManyActors(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		var all []*target
		for i := range 300 {
			all = append(all, r.spawnTarget(fmt.Sprint("a", i), r.Runtime().OnLoop()))
		}
		for _, m := range notes(5) {
			for _, a := range all {
				r.deliver(a.pid, 1000, m)
			}
		}
		for _, a := range all {
			a.wantNotes(r, "one of many", 5)
		}
	})
}
