package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// An owner that does not return from *actor.Stopped is gone, although Proto.Actor then notifies
// none of its watchers. Its identifiers end as those of every owner that has stopped, without
// waiting for an event that they would have to deliver.
func TestOwnerFailsWhileItStops(t *testing.T) {
	for home, where := range map[string]func(*Runtime) actor.PropsOption{
		"on the loop": (*Runtime).OnLoop, "off the loop": (*Runtime).OffLoop,
		"plain": func(*Runtime) actor.PropsOption { return func(*actor.Props) {} },
	} {
		for name, leave := range leavings {
			t.Run(home+"/"+name, func(t *testing.T) {
				onFlavors(t, func(w *world) {
					p, idle := w.connect(), w.probe()
					bad := newProbe(w, w.sys, where(w.rt), func(ctx actor.Context) {
						if _, ok := ctx.Message().(*actor.Stopped); ok {
							leave()
						}
					})
					p.client.send(p.c, &Handover{To: bad.pid})
					next[*Done](p.client)
					kept := w.rt.CreateID(idle.pid, IDConfig{})
					w.sys.Root.Stop(bad.pid)
					settle()
					if home == "plain" && name == "Goexit" {
						// ends the goroutine that would report it: the next event shows it
						if _, alive := w.state(p.c); !alive {
							t.Error("noticed: the exception in this test and in the documentation is too much")
						}
						p.server.send(p.s, NewSend([]byte("x")))
						settle()
					}
					if s, alive := w.state(p.c); alive {
						w.Errorf("the identifier is %v, and its owner is gone", s)
					}
					if _, alive := w.state(kept); !alive {
						w.Error("another owner's identifier has ended")
					}
				})
			})
		}
	}
}

// Once a loop has ended, what fails later is not collected for it.
func TestNothingIsCollectedForALoopThatHasEnded(t *testing.T) {
	onFlavors(t, func(w *world) {
		l := w.rt.loops[0]
		if err := w.rt.Shutdown(w.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			w.rt.actorFailed(&actor.SupervisorEvent{Child: actor.NewPID(w.sys.Address(), name)})
		}
		if gone := l.gone.take(); len(gone) != 0 {
			t.Errorf("%d actors wait for a loop that has ended", len(gone))
		}
	})
}
