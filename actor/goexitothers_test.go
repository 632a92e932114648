package actor

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/iwarp"
)

// Owners end their loop's goroutine in the middle of a burst of messages. Every other connection
// on the loop goes on, or its owner learns that it has ended. The device has read more messages
// when the first of them is delivered.
func TestGoexitInTheMiddleOfInput(t *testing.T) {
	sys := testSystem(t)
	open := func() *Runtime {
		rt, err := Open(sys, Config{Device: iwarp.New()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := rt.Shutdown(ctx); err != nil {
				t.Logf("what was broken off is left: %v", err)
			}
		})
		return rt
	}
	here, there := open(), open()
	var over atomic.Bool
	defer over.Store(true)
	var left atomic.Int64
	serve := func(sometimes func()) string {
		p := newProbe(t, sys, nil, nil)
		_, at := listen(p, there, "127.0.0.1:0", IDConfig{Handler: actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Received:
				ctx.Respond(NewSend(m.Data))
				sometimes()
			}
		})})
		return at
	}
	const enough = 2000
	done := make(chan struct{}, 4)
	at := serve(func() {})
	for range cap(done) {
		n := 0
		sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(here.CreateID(ctx.Self(), IDConfig{}), &Dial{Addr: at})
			case *Established:
				ctx.Respond(NewSend([]byte("ping")))
			case *Received:
				if left.Load() > 0 { // it may be a while until the first owner leaves
					if n++; n == enough {
						done <- struct{}{}
					}
				}
				if !over.Load() {
					ctx.Respond(NewSend(m.Data))
				}
			case *Closed:
				if n < enough {
					t.Logf("after %d round trips: %v", n, m)
					done <- struct{}{}
				}
			}
		}, here.OnLoop()))
	}
	leave := func() {
		if rand.IntN(6) == 0 {
			left.Add(1)
			runtime.Goexit()
		}
	}
	bad := serve(leave)
	for range 6 {
		sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started, *Closed:
				if !over.Load() {
					ctx.Send(here.CreateID(ctx.Self(), IDConfig{}), &Dial{Addr: bad})
				}
			case *Established:
				for range 30 {
					ctx.Respond(NewSend(make([]byte, rand.IntN(3000))))
				}
			case *Received:
				leave()
			}
		}, here.OnLoop()))
	}
	wait := time.After(patience)
	for range cap(done) {
		select {
		case <-done:
		case <-wait:
			t.Fatalf("others' connections stand still, after %d Goexits", left.Load())
		}
	}
}
