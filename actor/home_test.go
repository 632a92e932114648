package actor

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

// Posts from many goroutines all arrive, each goroutine's in order: no wake-up is lost between a mailbox that goes idle and a
// producer that finds it busy.
func TestNoWakeupIsLost(t *testing.T) {
	const producers, each = 8, 2000
	inBothHomes(t, func(t *testing.T, rt *Runtime, home actor.PropsOption) {
		type from struct{ producer, n int }
		var next [producers]int
		total, done := 0, make(chan struct{})
		pid := rt.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
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
					rt.sys.Root.Send(pid, &from{p, n})
				}
			})
		}
		wg.Wait()
		<-done // a lost wake-up would hang here
		stop(t, rt.sys, pid)
	})
}

// The same for single messages, where the mailbox goes idle and the loop to sleep in between.
func TestNoWakeupIsLostOnAnIdleLoop(t *testing.T) {
	inBothHomes(t, func(t *testing.T, rt *Runtime, home actor.PropsOption) {
		sender := newInbox(rt.sys)
		pid := rt.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if d, ok := ctx.Message().(*data); ok {
				ctx.Respond(d)
			}
		}, home))
		for n := range 500 {
			sender.requests(rt.sys, pid, 1)
			if got := sender.wait(1); len(got) != n+1 {
				t.Fatalf("%d answers after %d requests", len(got), n+1)
			}
		}
		stop(t, rt.sys, pid, sender.pid)
	})
}

// A post does not run the actor on the poster's goroutine, as Proto.Actor's synchronized dispatcher does (one Send took 1.7 s).
func TestPostDoesNotRunTheActor(t *testing.T) {
	h := &byHand{}
	m, s := started(h)
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
	rt := newTestRuntime(t, 1)
	l := rt.loops[0]
	pid := rt.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, rt.OnLoop()))
	on(t, l, func() {
		before := l.el.Stats().Wakeups
		for n := range 100 {
			rt.sys.Root.Send(pid, &data{n})
		}
		if after := l.el.Stats().Wakeups; after != before {
			t.Errorf("%d wake-ups for posts from the loop itself", after-before)
		}
	})
	stop(t, rt.sys, pid)
}

// Waking an actor off the loop has the loops yield before they sleep; the loop's own actors do not.
func TestHandoff(t *testing.T) {
	rt := newTestRuntime(t, 2)
	off := rt.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, rt.OffLoop()))
	ons := rt.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, onLoop(rt.loops[0])))
	for _, l := range rt.loops {
		for rt.box(off).state.Load() != idle { // an actor that runs anyhow is not woken
			runtime.Gosched()
		}
		on(t, l, l.turned) // what the spawns have left
		on(t, l, func() {
			rt.sys.Root.Send(ons, &data{})
			if l.mail.handoff.Load() {
				t.Error("a message between a loop's own actors asks for a handoff")
			}
		})
		on(t, l, func() {
			rt.sys.Root.Send(off, &data{})
			if !l.mail.handoff.Load() {
				t.Error("a message to an actor off the loop asks for no handoff")
			}
		})
	}
	on(t, rt.loops[0], func() { rt.boxOf(ons).deliver(&event{}) })
	on(t, rt.loops[0], func() {
		if rt.loops[0].mail.handoff.Load() {
			t.Error("an actor's turn has not passed the handoff on to the loop")
		}
	})
	stop(t, rt.sys, off, ons)
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

// With one processor, the actor that a loop's actor has woken runs before the loop waits. Without the handoff it never does. (Go's
// scheduler passes over it once in a while, so one time is no proof.)
func TestHandoffComesBeforeTheWait(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var sent, seen, inTime atomic.Int32
	looked := make(chan struct{}, 1)
	last := int32(0)
	sys := testSystem(t)
	el, err := eventloop.New(eventloop.Config{Poller: lookingPoller{eventlooptest.NewPoller(), func() {
		if n := sent.Load(); n != last {
			last = n
			if seen.Load() == n {
				inTime.Add(1)
			}
			looked <- struct{}{}
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{el: el, boxes: boxesOf(sys)}
	el.Start()
	defer shut(t, l)
	rt := &Runtime{sys: sys, boxes: l.boxes, loops: []*loop{l}, off: &goroutines{loops: []*loop{l}}}
	off := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if d, ok := ctx.Message().(*data); ok {
			seen.Store(int32(d.n))
		}
	}, rt.OffLoop()))
	ons := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if d, ok := ctx.Message().(*data); ok {
			sent.Store(int32(d.n))
			ctx.Send(off, d)
		}
	}, rt.OnLoop()))
	const times = 50
	for n := range times {
		for rt.box(off).state.Load() != idle {
			runtime.Gosched()
		}
		on(t, l, l.turned) // what other posts have left
		sys.Root.Send(ons, &data{n + 1})
		<-looked
	}
	if inTime.Load() < times/2 {
		t.Errorf("the woken actor ran before the loop's wait %d times of %d", inTime.Load(), times)
	}
	stop(t, sys, off, ons)
}

// A PID tells where its actor runs for as long as it lives, and a name's new owner is not taken for the old one.
func TestBoxes(t *testing.T) {
	rt := newTestRuntime(t, 2)
	root := rt.sys.Root
	idle := func(actor.Context) {}
	for _, c := range []struct {
		name    string
		opts    []actor.PropsOption
		onLoop  *loop
		offLoop bool
	}{
		{"loop 0", []actor.PropsOption{onLoop(rt.loops[0])}, rt.loops[0], false},
		{"loop 1", []actor.PropsOption{onLoop(rt.loops[1])}, rt.loops[1], false},
		{"off loop", []actor.PropsOption{rt.OffLoop()}, nil, true},
		{"Proto.Actor's own", nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the second time as the successor under the same name
				pid, err := root.SpawnNamed(actor.PropsFromFunc(idle, c.opts...), "name")
				if err != nil {
					t.Fatal(err)
				}
				var at *loop
				m := rt.boxOf(pid)
				if m != nil {
					at = m.loop()
				}
				if (m != nil) != (c.onLoop != nil) {
					t.Errorf("boxOf is %p: only an actor on a loop is delivered to", m)
				}
				if off := m == nil && rt.box(pid) != nil; at != c.onLoop || off != c.offLoop {
					t.Errorf("on loop %p, off loop %v; want %p, %v", at, off, c.onLoop, c.offLoop)
				}
				if rt.box(actor.NewPID("elsewhere:1", pid.Id)) != nil {
					t.Error("a remote PID of the same id has a box here")
				}
				stop(t, rt.sys, pid)
				unboxed(rt, pid)
			}
		})
	}
	if rt.box(nil) != nil {
		t.Error("a nil PID has a box")
	}
}

// An old mailbox that closes late leaves the successor of its name alone.
func TestBoxesKeepTheSuccessor(t *testing.T) {
	b := boxesOf(testSystem(t))
	old, successor := &mailbox{}, &mailbox{}
	b.add("name", old)
	b.add("name", successor)
	b.remove("name", old)
	if b.get("name") != successor {
		t.Error("the successor lost its box")
	}
}

// OnLoop spreads actors over the loops.
func TestOnLoopSpreads(t *testing.T) {
	rt := newTestRuntime(t, 2)
	count := map[*loop]int{}
	for range 10 {
		pid := rt.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, rt.OnLoop()))
		count[rt.boxOf(pid).loop()]++
		stop(t, rt.sys, pid)
	}
	for i, l := range rt.loops {
		if count[l] != 5 {
			t.Errorf("loop %d got %d of 10 actors, want 5", i, count[l])
		}
	}
}

// The loop's reports name the actor.
func TestLoopName(t *testing.T) {
	rt := newTestRuntime(t, 1)
	pid := rt.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, rt.OnLoop()))
	if got, want := rt.boxOf(pid).LoopName(), fmt.Sprint("actor ", pid.Id); got != want {
		t.Errorf("LoopName is %q, want %q", got, want)
	}
	stop(t, rt.sys, pid)
}
