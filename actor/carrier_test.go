package actor_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// The mailboxes of OnLoop and OffLoop actors are found, and carry messages; others are not found.
func TestMailboxOf(t *testing.T) {
	for name, where := range map[string]func(rt *rdma.Runtime) []actor.PropsOption{
		"on the loop":       func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OnLoop()} },
		"off the loop":      func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OffLoop()} },
		"Proto.Actor's own": func(*rdma.Runtime) []actor.PropsOption { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				got, consumed := "", 0
				pid := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if s, ok := ctx.Message().(string); ok {
						got = s
					}
				}, where(w.Runtime())...))
				w.Wait()
				process, _ := w.System().ProcessRegistry.GetLocal(pid.Id)
				m, ok := w.Runtime().MailboxOf(pid.Id, process)
				if want := name != "Proto.Actor's own"; ok != want {
					t.Fatalf("a mailbox: %v, want %v", ok, want)
				}
				if !ok {
					return
				}
				m.Carry(&rdma.Carrier{Message: "carried", Consumed: func() { consumed++ }})
				w.Wait()
				if got != "carried" || consumed != 1 {
					t.Errorf("received %q, consumed %d times", got, consumed)
				}
			})
		})
	}
}
