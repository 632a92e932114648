package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// An actor that has ended without calling left holds up no Shutdown, and costs no other actor its
// message, even if a subscriber of dead letters fails.
func TestOnShutdownOfAnActorThatIsGone(t *testing.T) {
	type end struct{}
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				w.subscribe(func(ev any) {
					if _, ok := ev.(*actor.DeadLetterEvent); ok {
						leave()
					}
				})
				told := make(chan struct{})
				spawn := func(atEnd func()) *actor.PID {
					started := make(chan struct{})
					var left func()
					pid := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
						switch ctx.Message().(type) {
						case *actor.Started:
							left = LocalOf(ctx).OnShutdown(&end{})
							close(started)
						case *end:
							atEnd()
							left()
						}
					}, w.rt.OnLoop()))
					<-started
					return pid
				}
				gone := spawn(func() { w.Error("it is gone") })
				spawn(func() { close(told) })
				stop(w, w.sys, gone)
				w.shutDown()
				select {
				case <-told:
				default:
					w.Error("the other actor was not notified")
				}
			})
		})
	}
}

// An actor that calls OnShutdown again after a restart is notified once, and one call of left is
// enough.
func TestOnShutdownAfterARestart(t *testing.T) {
	type end struct{}
	onFlavors(t, func(w *world) {
		started, notified := make(chan struct{}, 2), 0
		var left func()
		pid := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				left = LocalOf(ctx).OnShutdown(&end{})
				started <- struct{}{}
			case string:
				panic("a bug of the user's")
			case *end:
				notified++
				left()
			}
		}, w.rt.OnLoop()))
		<-started
		w.sys.Root.Send(pid, "restart")
		<-started
		began := time.Now()
		w.shutDown()
		if d := time.Since(began); d > 0 || notified != 1 {
			w.Errorf("notified %d times, Shutdown took %v", notified, d)
		}
	})
}
