package actor_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
)

// An actor has a Local wherever it runs. Without a loop there is no Line and no Relay to be had,
// and the rest does what can be done.
func TestLocalEverywhere(t *testing.T) {
	for name, where := range map[string]func(rt *rdma.Runtime) []actor.PropsOption{
		"on the loop":       func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OnLoop()} },
		"off the loop":      func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OffLoop()} },
		"Proto.Actor's own": func(*rdma.Runtime) []actor.PropsOption { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				loop, began, done := name == "on the loop", w.Now(), false
				w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Started); !ok {
						return
					}
					local := rdma.LocalOf(ctx)
					if _, ok := local.Relay(ctx.Self()); ok != loop {
						t.Errorf("a Relay: %v, want %v", ok, loop)
					}
					if !loop {
						localWithout(t, local)
					}
					if now := local.Now(); !now.Equal(began) {
						t.Errorf("it is %v there, and %v here", now, began)
					}
					local.Woke()
					local.Do(rdma.NewTask("a task"), func() { done = true })
				}, where(w.Runtime())...))
				w.Wait()
				if !done {
					t.Error("the task was not done")
				}
			})
		})
	}
}

// localWithout checks the effect of each method of a Local without a loop.
func localWithout(t *testing.T, l rdma.Local) {
	t.Helper()
	done := false
	l.Do(rdma.NewTask("a task"), func() { done = true })
	if !done {
		t.Error("the task was not done")
	}
	if l.Now().IsZero() {
		t.Error("no time")
	}
	l.Woke()
	if _, ok := l.Line(rdma.Handle(1)); ok {
		t.Error("a Line without a loop")
	}
	if _, ok := l.Relay(nil); ok {
		t.Error("a Relay without a loop")
	}
}

// While an actor runs a Task, the watchdog names the Task. After a Task that has panicked it names
// the actor's message again.
func TestLocalDoIsNamed(t *testing.T) {
	var names []string
	stalls := actortest.Config{OnStall: func(s eventloop.Stall) { names = append(names, s.Holder.Name) }}
	actortest.Run(t, stalls, func(w *actortest.World) {
		w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); !ok {
				return
			}
			func() {
				defer func() { _ = recover() }()
				rdma.LocalOf(ctx).Do(rdma.NewTask("a task"), func() {
					time.Sleep(1500 * time.Millisecond)
					panic("nothing")
				})
			}()
			time.Sleep(1500 * time.Millisecond)
		}, w.Runtime().OnLoop()))
		w.Advance(5 * time.Second)
	})
	if len(names) == 0 || names[0] != "a task" || len(names) > 1 && names[1] == "a task" {
		t.Errorf("the watchdog has named %q", names)
	}
}
