package actor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// virtual gives the test a runtime in a bubble: a loop without a kernel, and time that jumps.
func virtual(t *testing.T, test func(t *testing.T, rt *Runtime)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sys := testSystem(t)
		el, err := eventloop.New(eventloop.Config{Poller: eventlooptest.NewPoller(), CheckOwner: true, Logger: sys.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		l := &loop{el: el, boxes: boxesOf(sys)}
		el.Start()
		defer shut(t, l)
		test(t, &Runtime{sys: sys, boxes: l.boxes, loops: []*loop{l}, off: &goroutines{loops: []*loop{l}}})
	})
}

// inEveryHome runs the test for actors on a loop, off it, and for Proto.Actor's own.
func inEveryHome(t *testing.T, test func(t *testing.T, rt *Runtime, home ...actor.PropsOption)) {
	t.Helper()
	for name, home := range homes {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, rt *Runtime) { test(t, rt, home(rt)) })
		})
	}
	t.Run("Proto.Actor's own", func(t *testing.T) {
		virtual(t, func(t *testing.T, rt *Runtime) { test(t, rt) })
	})
}

// A message comes after its time, not before, and not when it was stopped.
func TestAfter(t *testing.T) {
	inEveryHome(t, func(t *testing.T, rt *Runtime, home ...actor.PropsOption) {
		start := time.Now()
		var at []time.Duration
		var cancel func()
		pid := rt.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				After(ctx, 2*time.Second, &data{2})
				After(ctx, time.Second, &data{1})
				After(ctx, 0, &control{})
				cancel = After(ctx, 3*time.Second, &data{3})
				if len(at) > 0 {
					t.Error("a message came inside the call of After")
				}
			case *control:
				at = append(at, time.Since(start))
			case *data:
				at = append(at, time.Since(start))
				if m.n == 2 {
					cancel()
				}
			}
		}, home...))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		stop(t, rt.sys, pid)
		if len(at) != 3 || at[0] != 0 || at[1] != time.Second || at[2] != 2*time.Second {
			t.Errorf("messages at %v, want 0s, 1s, 2s", at)
		}
	})
}

// An actor that has stopped gets nothing, nor does the one that has its name now, and nobody hears of a dead letter.
func TestAfterStop(t *testing.T) {
	inEveryHome(t, func(t *testing.T, rt *Runtime, home ...actor.PropsOption) {
		sub := rt.sys.EventStream.Subscribe(func(e any) {
			if d, ok := e.(*actor.DeadLetterEvent); ok {
				t.Errorf("a dead letter: %v", d.Message)
			}
		})
		defer rt.sys.EventStream.Unsubscribe(sub)
		pid, err := rt.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				After(ctx, time.Second, &data{})
			}
		}, home...), "name")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop(t, rt.sys, pid)
		successor, err := rt.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*data); ok {
				t.Error("the message reached the successor of its actor's name")
			}
		}, home...), "name")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		stop(t, rt.sys, successor)
	})
}

// A nil message does nobody harm.
func TestAfterNil(t *testing.T) {
	inEveryHome(t, func(t *testing.T, rt *Runtime, home ...actor.PropsOption) {
		refused := 0
		sub := rt.sys.EventStream.Subscribe(func(e any) {
			if d, ok := e.(*actor.DeadLetterEvent); ok && d.Message == nil {
				refused++
			}
		})
		defer rt.sys.EventStream.Unsubscribe(sub)
		pid := rt.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				After(ctx, time.Second, nil)
			}
		}, home...))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if refused != 1 {
			t.Errorf("%d dead letters for a nil message, want 1", refused)
		}
		stop(t, rt.sys, pid)
	})
}
