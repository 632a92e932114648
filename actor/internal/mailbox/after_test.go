package mailbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// virtual runs the test with a runtime in a bubble: a loop without a kernel, and time that jumps.
func virtual(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sys := testSystem(t)
		r := &rig{sys: sys, registry: RegistryOf(sys), off: &Goroutines{}}
		defer shut(t, r.addLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller(), CheckGoroutine: true, Logger: sys.Logger()}))
		test(t, r)
	})
}

// inEveryHome runs the test for actors on a loop, off it, and for Proto.Actor's own.
func inEveryHome(t *testing.T, test func(t *testing.T, r *rig, home ...actor.PropsOption)) {
	t.Helper()
	for name, home := range homes {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) { test(t, r, home(r)) })
		})
	}
	t.Run("Proto.Actor's own", func(t *testing.T) {
		virtual(t, func(t *testing.T, r *rig) { test(t, r) })
	})
}

// A message comes after its time, not before, and not when it was stopped.
func TestAfter(t *testing.T) {
	inEveryHome(t, func(t *testing.T, r *rig, home ...actor.PropsOption) {
		start := time.Now()
		var at []time.Duration
		var cancel func()
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
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
		stop(t, r.sys, pid)
		if len(at) != 3 || at[0] != 0 || at[1] != time.Second || at[2] != 2*time.Second {
			t.Errorf("messages at %v, want 0s, 1s, 2s", at)
		}
	})
}

// A stopped actor gets nothing, nor does a later one of its name, and there is no dead letter.
func TestAfterStop(t *testing.T) {
	inEveryHome(t, func(t *testing.T, r *rig, home ...actor.PropsOption) {
		sub := r.sys.EventStream.Subscribe(func(e any) {
			if d, ok := e.(*actor.DeadLetterEvent); ok {
				t.Errorf("a dead letter: %v", d.Message)
			}
		})
		defer r.sys.EventStream.Unsubscribe(sub)
		pid, err := r.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				After(ctx, time.Second, &data{})
			}
		}, home...), "name")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop(t, r.sys, pid)
		successor, err := r.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*data); ok {
				t.Error("the message reached the successor of its actor's name")
			}
		}, home...), "name")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		stop(t, r.sys, successor)
	})
}

// A nil message does no harm.
func TestAfterNil(t *testing.T) {
	inEveryHome(t, func(t *testing.T, r *rig, home ...actor.PropsOption) {
		refused := 0
		sub := r.sys.EventStream.Subscribe(func(e any) {
			if d, ok := e.(*actor.DeadLetterEvent); ok && d.Message == nil {
				refused++
			}
		})
		defer r.sys.EventStream.Unsubscribe(sub)
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				After(ctx, time.Second, nil)
			}
		}, home...))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if refused != 1 {
			t.Errorf("%d dead letters for a nil message, want 1", refused)
		}
		stop(t, r.sys, pid)
	})
}
