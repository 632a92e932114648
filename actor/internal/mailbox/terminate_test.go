package mailbox

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// leavings are the ways in which code panics.
var leavings = map[string]func(){
	"panic":     func() { panic("for the test") },
	"nil panic": func() { panic(nil) }, // as users' code may
}

// watcherOf spawns an actor that watches pid, and reports its end.
func watcherOf(r *rig, pid *actor.PID) (watcher *actor.PID, ended <-chan struct{}) {
	gone := make(chan struct{})
	return r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(pid)
		case *actor.Terminated:
			if m.Who.Equal(pid) {
				close(gone)
			}
		}
	})), gone
}

// An actor that fails at every message stops, under any supervisor: it is not restarted without
// end, and its place is free for others. Its watchers are notified, and its messages are answered.
func TestActorThatAlwaysFails(t *testing.T) {
	for kind, supervisor := range map[string]actor.SupervisorStrategy{
		"default":    actor.DefaultSupervisorStrategy(),
		"restarting": actor.NewRestartingStrategy(),
		"resuming":   actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective }),
	} {
		for name, leave := range leavings {
			t.Run(kind+"/"+name, func(t *testing.T) {
				inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
					var failures atomic.Int64
					bad := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {
						failures.Add(1)
						leave()
					}, home, actor.WithGuardian(supervisor)))
					watcher, ended := watcherOf(r, bad)
					asker := newInbox(r.sys)
					asker.requests(r.sys, bad, 3)
					if kind == "resuming" { // it fails at each message, and lives
						r.sys.Root.Stop(bad)
					}
					<-ended
					if kind != "resuming" {
						for _, msg := range asker.wait(3) {
							if _, ok := msg.(*actor.DeadLetterResponse); !ok {
								t.Errorf("answered with %T", msg)
							}
						}
					}
					unboxed(r, bad)
					if n := failures.Load(); n > 100 {
						t.Errorf("it has failed %d times", n)
					}
					stop(t, r.sys, watcher, asker.pid)
				})
			})
		}
	}
}

// An actor that was asked to stop stops, although it fails at that or is restarted in between.
func TestStopOfAnActorThatFails(t *testing.T) {
	for name, leave := range leavings {
		for at, is := range map[string]func(msg any) bool{
			"Stopping":   func(msg any) bool { _, ok := msg.(*actor.Stopping); return ok },
			"Stopped":    func(msg any) bool { _, ok := msg.(*actor.Stopped); return ok },
			"Terminated": func(msg any) bool { _, ok := msg.(*actor.Terminated); return ok },
			"a message":  func(msg any) bool { _, ok := msg.(*data); return ok },
		} {
			t.Run(at+"/"+name, func(t *testing.T) {
				inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
					child := make(chan *actor.PID, 1)
					bad := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
						switch ctx.Message().(type) {
						case *actor.Started:
							child <- ctx.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
						case *actor.Stopping:
							ctx.Send(ctx.Self(), &data{}) // while it waits for its child
						}
						if is(ctx.Message()) {
							leave()
						}
					}, home))
					childWatcher, childEnded := watcherOf(r, <-child)
					watcher, ended := watcherOf(r, bad)
					r.sys.Root.Stop(bad)
					<-ended
					<-childEnded
					unboxed(r, bad)
					stop(t, r.sys, watcher, childWatcher)
				})
			})
		}
	}
}

// A supervisor that fails itself, or a subscriber of its events, costs the actor and nothing else.
func TestSupervisorThatFails(t *testing.T) {
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
				var escaped atomic.Int64
				count := func(string, string, any) { escaped.Add(1) }
				on(t, r.loops[0], func() { r.loops[0].Escaped = count })
				r.off.Escaped = count
				sub := r.sys.EventStream.Subscribe(func(ev any) {
					if _, ok := ev.(*actor.SupervisorEvent); ok {
						leave()
					}
				})
				defer r.sys.EventStream.Unsubscribe(sub)
				bad := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*data); ok {
						panic("for the test")
					}
				}, home))
				watcher, ended := watcherOf(r, bad)
				r.sys.Root.Send(bad, &data{})
				<-ended
				if escaped.Load() == 0 {
					t.Error("nobody was told")
				}
				stop(t, r.sys, watcher)
			})
		})
	}
}

// A subscriber of dead letters that fails costs neither the message that is answered its memory,
// nor the messages behind it their answers.
func TestDeadLettersThatFail(t *testing.T) {
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) { deadLettersFail(t, r, home, leave) })
		})
	}
}

// deadLettersFail makes a subscriber leave at the first of the dead letters of an actor, and waits
// until all are answered. It returns the stopped actor.
func deadLettersFail(t *testing.T, r *rig, home actor.PropsOption, leave func()) *actor.PID {
	sub := r.sys.EventStream.Subscribe(func(ev any) {
		if d, ok := ev.(*actor.DeadLetterEvent); ok {
			if _, ok := d.Message.(*holding); ok {
				leave()
			}
		}
	})
	defer r.sys.EventStream.Unsubscribe(sub)
	pid, release := held(r, home, func(actor.Context) {})
	holds, sender := &holding{}, newInbox(r.sys)
	r.sys.Root.Send(pid, holds)
	sender.requests(r.sys, pid, 1)
	r.sys.Root.Stop(pid)
	release()
	sender.wait(1)
	for holds.finished.Load() == 0 {
		runtime.Gosched()
	}
	stop(t, r.sys, sender.pid)
	return pid
}

// A loop ends although its actors fail at everything.
func TestLoopOfActorsThatFailEnds(t *testing.T) {
	sys := testSystem(t)
	r := &rig{sys: sys, registry: RegistryOf(sys), off: &Goroutines{}}
	l := r.addLoop(t, eventloop.Config{Logger: sys.Logger(), OnPanic: func(eventloop.Panic) {}})
	for _, leave := range leavings {
		sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) { leave() }, in(l), actor.WithGuardian(actor.NewRestartingStrategy())))
	}
	r.registry.LastCalls(l)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.el.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// Watchers are those who watch, however often that has changed.
func TestWatchers(t *testing.T) {
	var w watchers
	pid := func(id string) *actor.PID { return actor.NewPID("here", id) }
	for range 1000 {
		w.noteWatch(pid("a"), true)
		w.noteWatch(pid("b"), true)
		w.noteWatch(pid("a"), false)
		w.noteWatch(pid("c"), true)
	}
	w.noteWatch(pid("a"), true)
	w.noteWatch(pid("c"), false)
	ids := make(map[string]int)
	for _, p := range w.watcherPIDs() {
		ids[p.Id]++
	}
	if len(ids) != 2 || ids["a"] != 1 || ids["b"] != 1 {
		t.Errorf("they are %v", ids)
	}
	if len(w) > 20 {
		t.Errorf("%d entries for two", len(w))
	}
}

// An actor that fails at a message while it waits for its child still gets Stopped.
func TestFailureWhileWaitingForChildren(t *testing.T) {
	for how, fail := range map[string]func(){"panic": func() { panic("for the test") }, "Goexit": runtime.Goexit} {
		inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
			hold, childStopping := make(chan struct{}), make(chan struct{})
			stopping, stopped := make(chan struct{}), make(chan struct{}, 1)
			if how == "Goexit" {
				home = r.OffLoop() // on a loop it ends the loop
			}
			pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch ctx.Message().(type) {
				case *actor.Started:
					ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
						if _, ok := ctx.Message().(*actor.Stopping); ok {
							close(childStopping)
							<-hold
						}
					}, r.OffLoop()))
				case *actor.Stopping:
					close(stopping)
				case *actor.Stopped:
					stopped <- struct{}{}
				case *holding:
					fail()
				}
			}, home))
			end := r.sys.Root.StopFuture(pid)
			<-stopping
			<-childStopping
			msg := &holding{}
			r.sys.Root.Send(pid, msg)
			for msg.finished.Load() == 0 {
				runtime.Gosched()
			}
			close(hold)
			if err := end.Wait(); err != nil {
				t.Error(err)
			}
			if len(stopped) != 1 {
				t.Errorf("after a %s it does not get Stopped", how)
			}
		})
	}
}
