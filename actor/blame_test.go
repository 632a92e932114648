package actor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// The watchdog names the actor that blocks a loop, and the type of its message, also when a device
// has brought the message. It shows where the actor blocks.
func TestWatchdogNamesTheActor(t *testing.T) {
	var stalls chan eventloop.Stall
	inWorld(t, states.IWARP, func(w *world) {
		stalls = make(chan eventloop.Stall, 10) // the bubble's
		p := w.connect()
		stand := func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case string: // off the loop this would be allowed
				_, _ = ctx.RequestFuture(ctx.Self(), 1, 3*time.Second).Result()
			case *Received:
				time.Sleep(3 * time.Second)
			case *SendFailed: // in the middle of the identifier's own turn
				time.Sleep(3 * time.Second)
			case *Written:
				m.wait()
			}
		}
		p.client.reactWith(stand)
		check := func(what string, who *actor.PID, at, in string) {
			t.Helper()
			s := <-stalls
			if s.Holder.Name != "actor "+who.Id+" at "+at || !strings.Contains(string(s.Stack), in) {
				t.Errorf("%s: %v holds the loop at %s", what, s.Holder, s.Stack)
			}
			time.Sleep(time.Minute)
		}
		w.sys.Root.Send(p.client.pid, "go")
		check("Future.Result", p.client.pid, "string", "Result")
		p.server.send(p.s, NewSend([]byte("x")))
		check("Receive of what the device has brought", p.client.pid, "*actor.Received", "TestWatchdogNamesTheActor")
		p.client.send(p.c, NewSend(make([]byte, 10<<20)))
		check("Receive of what an identifier has answered", p.client.pid, "*actor.SendFailed", "TestWatchdogNamesTheActor")
		p.client.send(p.c, &Call{Fn: func(*cmid.ID) error { time.Sleep(3 * time.Second); return nil }})
		check("Call.Fn", p.c, "*actor.Call", "TestWatchdogNamesTheActor")
		for len(p.client.got) > 0 {
			<-p.client.got
		}
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
	}, Config{Loops: []eventloop.Config{{OnStall: func(s eventloop.Stall) { stalls <- s }}}})
}

// Written is a message whose receiver waits in Ask.
type Written struct{ wait func() }

// A loop must not wait for another runtime either: that one may be waiting for this.
func TestAskOnAnothersLoop(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		errs := make(chan error, 1)
		p := w.farProbe()
		id := w.rt.CreateID(nil, IDConfig{})
		p.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Written); ok {
				m.wait()
			}
		})
		w.sys.Root.Send(p.pid, &Written{func() {
			_, err := Ask[*Closed](context.Background(), w.rt, id, &DestroyID{})
			errs <- err
		}})
		is(w, <-errs, eventloop.ErrOnLoop)
		w.sys.Root.Send(id, &DestroyID{})
	})
}

// box is a message of a user's, which may have any methods.
type box struct{}

func (*box) Carried() any            { return nil }
func (*box) Retained() any           { return nil }
func (*box) Lane() int               { return 0 }
func (*box) Retain()                 {}
func (*box) Delivered()              {}
func (*box) Release(any) (err error) { return nil }

// A user's message is nothing but a message, whatever its methods are called.
func TestMethodsOfUsers(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		got := 0
		p := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*box); ok {
				got++
			}
		}, w.rt.OnLoop()))
		w.sys.Root.Send(p, &box{})
		settle()
		if got != 1 {
			w.Errorf("received %d times, want once", got)
		}
		stop(w, w.sys, p)
	}, Config{Loops: []eventloop.Config{{OnStall: func(eventloop.Stall) {}}}})
}
