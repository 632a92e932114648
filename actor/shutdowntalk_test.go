package actor

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// Actors of the application that talk to each other without end, or to themselves, do not keep a
// runtime from ending: after its identifiers they receive nothing more.
func TestShutdownWhileActorsTalk(t *testing.T) {
	for name, loops := range map[string]int{"one loop": 1, "two loops": 2} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, states.IWARP, func(w *world) {
				echo := func(ctx actor.Context) {
					if _, ok := ctx.Message().(string); ok {
						ctx.Request(ctx.Sender(), ctx.Message())
					}
				}
				a := w.sys.Root.Spawn(actor.PropsFromFunc(echo, w.rt.OnLoop()))
				b := w.sys.Root.Spawn(actor.PropsFromFunc(echo, w.rt.OnLoop()))
				self := w.sys.Root.Spawn(actor.PropsFromFunc(echo, w.rt.OnLoop()))
				w.sys.Root.RequestWithCustomSender(a, "for ever", b)
				w.sys.Root.RequestWithCustomSender(self, "for ever", self)
				if err := w.rt.Shutdown(context.Background()); err != nil {
					w.Error(err)
				}
				stop(w, w.sys, a, b, self)
			}, Config{Loops: make([]eventloop.Config, loops)})
		})
	}
}

// Messages sent to an actor before the end of the runtime are received, however many they are.
func TestShutdownDeliversWhatWaits(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		const waiting = 1000
		got := 0
		pid := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				got++
			}
		}, w.rt.OnLoop()))
		settle()
		hold := make(chan struct{})
		_ = w.rt.loops[0].el.Post(func() { <-hold })
		for range waiting {
			w.sys.Root.Send(pid, "still")
		}
		// right behind the first of its turns
		_ = w.rt.loops[0].el.Post(func() { w.rt.registry.LastCalls(w.rt.loops[0].exec) })
		close(hold)
		if err := w.rt.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
		if got != waiting {
			w.Errorf("%d of %d messages were received", got, waiting)
		}
		stop(w, w.sys, pid)
	})
}
