package mailbox

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// An actor off the loops that ends its goroutine fails, as by a panic: its message is released, and
// it receives the next ones.
func TestExitOffTheLoops(t *testing.T) {
	r := newRig(t, 1)
	fails := &holding{}
	var restarted atomic.Bool
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *holding:
			runtime.Goexit()
		case *actor.Restarting:
			restarted.Store(true)
		case *control:
			ctx.Respond(&data{})
		}
	}, r.OffLoop()))
	r.sys.Root.Send(pid, fails)
	for fails.finished.Load() == 0 || !restarted.Load() {
		runtime.Gosched()
	}
	asker := newInbox(r.sys)
	for range 3 {
		r.sys.Root.RequestWithCustomSender(pid, &control{}, asker.pid)
	}
	for _, msg := range asker.wait(3) {
		if _, ok := msg.(*data); !ok {
			t.Errorf("answered with %T", msg)
		}
	}
	if n := fails.finished.Load(); n != 1 {
		t.Errorf("its message was released %d times", n)
	}
	stop(t, r.sys, pid, asker.pid)
}

// Other user code that ends an actor's goroutine off the loops does so, too: a subscriber of dead
// letters.
func TestExitOfASubscriberOffTheLoops(t *testing.T) {
	r := newRig(t, 1)
	unboxed(r, deadLettersFail(t, r, r.OffLoop(), runtime.Goexit))
}

// An actor on a loop that ends the loop's goroutine, in its turn or in the middle of another one's,
// loses that message. It and the others can be stopped, and their messages are answered.
func TestExitOnALoop(t *testing.T) {
	for how, send := range map[string]func(l *Loop, m *Mailbox, msg *holding){
		"in its turn": func(_ *Loop, m *Mailbox, msg *holding) { m.PostUserMessage(msg) },
		"delivered":   func(l *Loop, m *Mailbox, msg *holding) { _ = l.el.Post(func() { m.Deliver(msg) }) },
		"in the middle of another one's": func(l *Loop, m *Mailbox, msg *holding) {
			outer := m.invoker.(actor.Context).ActorSystem().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*data); ok {
					m.Deliver(msg)
				}
			}, in(l)))
			m.invoker.(actor.Context).ActorSystem().Root.Send(outer, &data{})
		},
	} {
		t.Run(how, func(t *testing.T) {
			sys := testSystem(t)
			r := &rig{sys: sys, registry: RegistryOf(sys), off: &Goroutines{}}
			ended := make(chan struct{})
			l := r.addLoop(t, eventloop.Config{Logger: sys.Logger(), OnPanic: func(eventloop.Panic) {}})
			on(t, l, func() {
				l.el.OnGoexit(func(error) {
					l.Resume()
					r.registry.LastCalls(l)
					close(ended)
				})
			})
			pid := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*holding); ok {
					runtime.Goexit()
				}
			}, in(l)))
			fails := &holding{}
			send(l, r.registry.Find(pid), fails)
			<-ended
			sender := newInbox(sys)
			sender.requests(sys, pid, 3)
			for _, msg := range sender.wait(3) {
				if _, ok := msg.(*actor.DeadLetterResponse); !ok {
					t.Errorf("answered with %T", msg)
				}
			}
			if n := fails.finished.Load(); n != 1 {
				t.Errorf("the message was released %d times", n)
			}
			stop(t, sys, pid, sender.pid)
			var gone *eventloop.GoexitError
			if err := l.el.Shutdown(context.Background()); !errors.As(err, &gone) {
				t.Errorf("Shutdown: %v", err)
			}
			r.registry.BuryAll(l)
		})
	}
}
