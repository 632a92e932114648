package inbox

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A process whose waiting messages were refused is gone, and still blocks its goroutine. An actor
// that has its name now is sent to, whether it gets a system message first or not.
func TestASuccessorOfARefusedProcess(t *testing.T) {
	t.Run("a message", func(t *testing.T) { testSuccessorOfARefusedProcess(t, false) })
	t.Run("a system message", func(t *testing.T) { testSuccessorOfARefusedProcess(t, true) })
}

func testSuccessorOfARefusedProcess(t *testing.T, system bool) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		gate := make(chan struct{})
		defer close(gate)
		p := r.add(&process{name: "p", do: func(any) { <-gate }})
		r.deliver(p.pid(), 1000, notes(40)...)
		r.Advance(defaultPatience + time.Second)
		refused := len(r.refusals())
		if refused == 0 {
			r.t.Fatal("nothing was refused")
		}
		r.System().ProcessRegistry.Remove(p.pid())
		a := r.spawnTarget("p", opts...)
		a.suspend()
		if system {
			r.do(func(in *Inbox) { in.DeliverSystem(a.pid, &actor.Unwatch{Watcher: r.link}, 10) })
		}
		r.deliver(a.pid, 1000, notes(3)...)
		a.resume()
		a.wantNotes(r, "the successor", 3)
		if n := len(r.refusals()); n != refused {
			r.t.Errorf("%d of the successor's were refused", n-refused)
		}
	})
}

// A line that was refused takes something again when its target has only half a window left, and
// not as soon as it has consumed anything.
func TestHalfAWindowIsReadmitted(t *testing.T) {
	inRig(t, small, func(r *rig) {
		gate := make(chan struct{})
		do := func(msg any) {
			if _, ok := msg.(*note); ok {
				<-gate
			}
		}
		a := r.spawnReceiver("a", func(ctx actor.Context) { do(ctx.Message()) }, r.Runtime().OffLoop())
		r.deliver(a.pid, 1000, notes(40)...)
		r.Advance(defaultPatience + time.Second)
		refused := len(r.refusals())
		for i, want := range []bool{false, false, false, true} { // it has 7
			gate <- struct{}{}
			r.Wait()
			r.deliver(a.pid, 1000, &note{100})
			if taken := len(r.refusals()) == refused; taken != want {
				r.t.Errorf("after %d: taken: %v", i+1, taken)
			}
			refused = len(r.refusals())
		}
		close(gate)
		r.Wait()
	})
}

// The extra room for system messages that a large message brings ends with it.
func TestALargeMessageThatIsGone(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		a := r.spawnTarget("a", r.Runtime().OffLoop())
		r.deliver(a.pid, 100*narrow.Window, &note{0})
		a.suspend()
		r.deliver(a.pid, 10, &note{1})
		r.do(func(in *Inbox) {
			for range 1000 {
				in.DeliverSystem(a.pid, &actor.Watch{Watcher: r.link}, 10)
			}
			if n := in.lines["a"].route.inFlight(); n > 2*in.window {
				r.t.Errorf("%d bytes in flight", n)
			}
		})
		a.resume()
		r.Wait()
		r.do(func(in *Inbox) { in.DeliverSystem(a.pid, &actor.Unwatch{Watcher: r.link}, 10) })
	})
}

// A failure off the loop is reported, also if the inbox is closed before it notices.
func TestFailedBeforeClose(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		why := errors.New("as the test wants")
		r.do(func(in *Inbox) {
			in.queueFailure(message{target: r.link, msg: &note{}}, why)
			in.Close()
			if f := r.refusals(); len(f) != 1 || !errors.Is(f[0].why, why) {
				r.t.Errorf("refused: %+v", f)
			}
		})
	})
}

// A lane keeps no memory of a burst.
func TestALaneGivesItsMemoryUp(t *testing.T) {
	var l lane
	for range 1000 {
		l.push(item{})
	}
	for ok := true; ok; {
		_, ok = l.pop()
	}
	if n := l.queue.Cap(); n > fewItems || !l.isIdle() {
		t.Errorf("room for %d is kept", n)
	}
}

// However long an actor has lost its Touches, it gets another one within two minutes.
func TestTouchAfterAnHour(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		var swallow atomic.Bool
		swallow.Store(true)
		middleware := func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
				if _, ok := env.Message.(*actor.Touch); !ok || !swallow.Load() {
					next(ctx, env)
				}
			}
		}
		a := r.spawnTarget("a", actor.WithReceiverMiddleware(middleware))
		r.deliver(a.pid, 1000, notes(20)...)
		r.Advance(time.Hour)
		if n := len(a.notes()); n == 20 {
			r.t.Error("its Touches were answered")
		}
		swallow.Store(false)
		r.Advance(2 * time.Minute)
		a.wantNotes(r, "after an hour", 20)
	})
}
