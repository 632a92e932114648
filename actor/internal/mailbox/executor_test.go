package mailbox

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// Posts from many goroutines all arrive, each goroutine's in order: no wake-up is lost between a
// mailbox that goes idle and a producer that finds it busy.
func TestNoWakeupIsLost(t *testing.T) {
	const producers, each = 8, 2000
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		type from struct{ producer, n int }
		var next [producers]int
		total, done := 0, make(chan struct{})
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			m, ok := ctx.Message().(*from)
			if !ok {
				return
			}
			if m.n != next[m.producer] {
				t.Errorf("producer %d: got %d, want %d", m.producer, m.n, next[m.producer])
			}
			next[m.producer] = m.n + 1
			if total++; total == producers*each {
				close(done)
			}
		}, home))
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() {
				for n := range each {
					r.sys.Root.Send(pid, &from{p, n})
				}
			})
		}
		wg.Wait()
		<-done // a lost wake-up would hang here
		stop(t, r.sys, pid)
	})
}

// The same for single messages, where the mailbox goes idle and the loop to sleep in between.
func TestNoWakeupIsLostOnAnIdleLoop(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		sender := newInbox(r.sys)
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if d, ok := ctx.Message().(*data); ok {
				ctx.Respond(d)
			}
		}, home))
		for n := range 500 {
			sender.requests(r.sys, pid, 1)
			if got := sender.wait(1); len(got) != n+1 {
				t.Fatalf("%d answers after %d requests", len(got), n+1)
			}
		}
		stop(t, r.sys, pid, sender.pid)
	})
}

// A post does not run the actor on the poster's goroutine, as Proto.Actor's synchronized
// dispatcher does (one Send took 1.7 s).
func TestPostDoesNotRunTheActor(t *testing.T) {
	h := &byHand{}
	m, s := started(h, config)
	m.PostUserMessage(&data{1})
	m.PostSystemMessage(watching("1"))
	if len(s.got) != 0 {
		t.Errorf("the actor got %v within the post", names(s.got))
	}
	if len(h.queue) != 1 {
		t.Errorf("scheduled %d times, want once", len(h.queue))
	}
}

// While a loop is awake, its actors talk to each other without a system call.
func TestPostFromTheLoopWakesNobody(t *testing.T) {
	r := newRig(t, 1)
	l := r.loops[0]
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop()))
	on(t, l, func() {
		before := l.el.Stats().Wakeups
		for n := range 100 {
			r.sys.Root.Send(pid, &data{n})
		}
		if after := l.el.Stats().Wakeups; after != before {
			t.Errorf("%d wake-ups for posts from the loop itself", after-before)
		}
	})
	stop(t, r.sys, pid)
}

// Waking an actor off the loop has the loops yield before they sleep; the loop's own actors do not.
func TestHandoff(t *testing.T) {
	r := newRig(t, 2)
	off := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.OffLoop()))
	ons := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, in(r.loops[0])))
	for _, l := range r.loops {
		for r.registry.Find(off).state.Load() != idle { // an actor that runs anyhow is not woken
			runtime.Gosched()
		}
		on(t, l, l.turnEnded) // the rest of the spawns
		on(t, l, func() {
			r.sys.Root.Send(ons, &data{})
			if l.handoff.Load() {
				t.Error("a message between a loop's own actors asks for a handoff")
			}
		})
		on(t, l, func() {
			r.sys.Root.Send(off, &data{})
			if !l.handoff.Load() {
				t.Error("a message to an actor off the loop asks for no handoff")
			}
		})
	}
	on(t, r.loops[0], func() { r.boxOf(ons).Deliver(&event{}) })
	on(t, r.loops[0], func() {
		if r.loops[0].handoff.Load() {
			t.Error("an actor's turn has not passed the handoff on to the loop")
		}
	})
	stop(t, r.sys, off, ons)
}

// lookingPoller is asked to wait, and looks around before it does.
type lookingPoller struct {
	*eventlooptest.Poller
	look func()
}

func (p lookingPoller) Wait(dst []eventloop.Ready, timeout time.Duration) (int, error) {
	if timeout != 0 {
		p.look()
	}
	return p.Poller.Wait(dst, timeout)
}

// With one processor, the actor that a loop's actor has woken runs before the loop waits. Without
// the handoff it never does. (Go's scheduler passes over it once in a while, so one time is no
// proof.)
func TestHandoffComesBeforeTheWait(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var sent, seen, inTime atomic.Int32
	looked := make(chan struct{}, 1)
	last := int32(0)
	sys := testSystem(t)
	r := &rig{sys: sys, registry: RegistryOf(sys), off: &Goroutines{}}
	l := r.addLoop(t, eventloop.Config{Poller: lookingPoller{eventlooptest.NewPoller(), func() {
		if n := sent.Load(); n != last {
			last = n
			if seen.Load() == n {
				inTime.Add(1)
			}
			looked <- struct{}{}
		}
	}}})
	defer shut(t, l)
	off := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if d, ok := ctx.Message().(*data); ok {
			seen.Store(int32(d.n))
		}
	}, r.OffLoop()))
	ons := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if d, ok := ctx.Message().(*data); ok {
			sent.Store(int32(d.n))
			ctx.Send(off, d)
		}
	}, r.OnLoop()))
	const times = 50
	for n := range times {
		for r.registry.Find(off).state.Load() != idle {
			runtime.Gosched()
		}
		on(t, l, l.turnEnded) // what other posts have left
		sys.Root.Send(ons, &data{n + 1})
		<-looked
	}
	if inTime.Load() < times/2 {
		t.Errorf("the woken actor ran before the loop's wait %d times of %d", inTime.Load(), times)
	}
	stop(t, sys, off, ons)
}

// OnLoop spreads actors over the loops.
func TestOnLoopSpreads(t *testing.T) {
	r := newRig(t, 2)
	count := map[*Loop]int{}
	for range 10 {
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop()))
		count[r.boxOf(pid).Loop()]++
		stop(t, r.sys, pid)
	}
	for i, l := range r.loops {
		if count[l] != 5 {
			t.Errorf("loop %d got %d of 10 actors, want 5", i, count[l])
		}
	}
}

// The loop's reports name the actor.
func TestLoopName(t *testing.T) {
	r := newRig(t, 1)
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop()))
	if got, want := r.boxOf(pid).LoopName(), fmt.Sprint("actor ", pid.Id); got != want {
		t.Errorf("LoopName is %q, want %q", got, want)
	}
	stop(t, r.sys, pid)
}
