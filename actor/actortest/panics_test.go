package actortest_test

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/rpc"
)

// crash panics. The stack has to name it.
//
//go:noinline
func crash() { panic("the server has crashed") }

// spawn starts an actor that runs the functions it is sent.
func spawn(w *actortest.World, opts ...actor.PropsOption) *actor.PID {
	return w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if do, ok := ctx.Message().(func()); ok {
			do()
		}
	}, opts...))
}

func have(w *actortest.World, pid *actor.PID, do func()) {
	w.System().Root.Send(pid, do)
	w.Wait()
}

// handler serves one connection. It panics when it gets a message.
func handler(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Accept{})
	case *rdma.Received:
		crash()
	}
}

// request connects to such a server, and asks.
func request(w *actortest.World) *actortest.Probe {
	s, c := w.Probe(), w.Probe()
	s.Request(w.CreateID(s.PID(), rdma.IDConfig{Handler: actor.PropsFromFunc(handler)}), &rdma.Serve{Addr: server})
	actortest.Next[*rdma.Listening](s)
	id := w.CreateID(c.PID())
	c.Request(id, &rdma.Dial{Addr: server})
	actortest.Next[*rdma.Established](c)
	c.Request(id, rdma.NewSend([]byte("something")))
	return c
}

// call runs do in an rpc handler.
func call(t *testing.T, w *actortest.World, do func(), cfg ...rpc.HandlerConfig) {
	s := rpc.NewServer(w.Runtime())
	m := rpc.NewRawMethod("test.Do")
	rpc.HandleRaw(s, m, func(context.Context, []byte, []byte) ([]byte, error) { do(); return nil, nil }, one(cfg))
	at, err := s.Listen(w.T().Context(), "10.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rpc.Dial(w.T().Context(), w.Runtime(), at.String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = rpc.CallRaw(w.T().Context(), c, m, nil, nil) // a caller that only wants to have asked
	c.Close()
	s.Close()
}

// leavings are tests that would pass, because the crash causes the expected event.
var leavings = map[string]wrong{
	"a server that has to be silent": {
		func(_ *testing.T, w *actortest.World) { request(w).Silent(time.Second) },
		[]string{"actortest: actor rdma$", "/handler-", "has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"OnLoop": {
		func(_ *testing.T, w *actortest.World) { have(w, spawn(w, w.Runtime().OnLoop()), crash) },
		[]string{"has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"OffLoop": {
		func(_ *testing.T, w *actortest.World) { have(w, spawn(w, w.Runtime().OffLoop()), crash) },
		[]string{"has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"Proto.Actor's mailbox": {
		func(_ *testing.T, w *actortest.World) { have(w, spawn(w), crash) },
		[]string{"has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"a child": {
		func(_ *testing.T, w *actortest.World) {
			w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
						if _, ok := ctx.Message().(*actor.Started); ok && w.Elapsed() < time.Second {
							time.Sleep(time.Second)
							crash()
						}
					}))
				}
			}))
			w.Advance(time.Minute)
		},
		[]string{"has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"while everything is shut down": {
		func(_ *testing.T, w *actortest.World) {
			pid := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*rdma.Closed); ok {
					crash()
				}
			}))
			w.CreateID(pid)
		},
		[]string{"has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"Goexit": {
		func(_ *testing.T, w *actortest.World) { have(w, spawn(w, w.Runtime().OnLoop()), runtime.Goexit) },
		[]string{"actortest: runnable actor $", "called runtime.Goexit"},
		"left after the test",
	},
	"Fatal in an actor": {
		func(t *testing.T, w *actortest.World) {
			have(w, spawn(w, w.Runtime().OnLoop()), func() { t.Fatal("said in an actor") })
		},
		[]string{"said in an actor", "actortest: runnable actor $", "called runtime.Goexit", "(*common).FailNow("},
		"test timed out",
	},
	"Skip in an actor": {
		func(t *testing.T, w *actortest.World) {
			have(w, spawn(w, w.Runtime().OnLoop()), func() { t.Skip("said in an actor") })
		},
		[]string{"said in an actor", "called runtime.Goexit", "(*common).SkipNow("},
		"test timed out",
	},
	"Skip in Proto.Actor's mailbox": {
		func(t *testing.T, w *actortest.World) { have(w, spawn(w), func() { t.Skip("said in an actor") }) },
		[]string{"said in an actor", "Skip was called, on another goroutine than the test's"},
		"test timed out",
	},
	"Skip on a goroutine": {
		func(_ *testing.T, w *actortest.World) { go w.T().Skip("said elsewhere"); w.Wait() },
		[]string{"said elsewhere", "Skip was called, on another goroutine than the test's"},
		"test timed out",
	},
	"an rpc handler": {
		func(t *testing.T, w *actortest.World) { call(t, w, crash) },
		[]string{"actortest: rpc handler test.Do has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"an rpc handler OnLoop": {
		func(t *testing.T, w *actortest.World) { call(t, w, runtime.Goexit, rpc.HandlerConfig{OnLoop: true}) },
		[]string{"actortest: runnable actor rdma$", "called runtime.Goexit"},
		"rpc handler test.Do",
	},
	"Renew": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w, rdma.IDConfig{MaxMessage: 1024, Credits: 1})
			for range 3 { // the last ones wait for a credit
				s := rdma.NewSend([]byte("as it was"))
				s.Renew = func(b []byte) []byte { crash(); return b }
				c.client.Send(c.active, s)
			}
			actortest.Next[*rdma.Received](c.server)
			actortest.Next[*rdma.Disconnected](c.server)
		},
		[]string{"actortest: Renew of a Send to rdma$", "has panicked: the server has crashed", "actortest_test.crash("},
		"",
	},
	"expected, and it does not come": {
		func(_ *testing.T, w *actortest.World) { w.ExpectPanic("crashed") },
		[]string{`actortest: ExpectPanic("crashed"): no such panic has come`},
		"",
	},
	"another is expected": {
		func(_ *testing.T, w *actortest.World) {
			w.ExpectPanic("nil map")
			have(w, spawn(w, w.Runtime().OnLoop()), crash)
		},
		[]string{"has panicked: the server has crashed", `actortest: ExpectPanic("nil map"): no such panic has come`},
		"",
	},
	"expected once": {
		func(_ *testing.T, w *actortest.World) {
			w.ExpectPanic("crashed")
			pid := spawn(w, w.Runtime().OnLoop())
			have(w, pid, crash)
			have(w, pid, crash)
		},
		[]string{"has panicked: the server has crashed"},
		"no such panic",
	},
}

// Code that does not return fails the test, wherever it runs, although its caller goes on.
func TestPanicsFail(t *testing.T) { fail(t, leavings, none) }

// A test that is about a panic calls ExpectPanic.
func TestExpectPanic(t *testing.T) {
	for name, opt := range map[string]func(*rdma.Runtime) actor.PropsOption{"OnLoop": (*rdma.Runtime).OnLoop, "OffLoop": (*rdma.Runtime).OffLoop} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				pid := spawn(w, opt(w.Runtime()))
				w.ExpectPanic("has crashed")
				have(w, pid, crash)
				alive := false
				if have(w, pid, func() { alive = true }); !alive {
					t.Error("the actor was not restarted")
				}
				w.ExpectPanic("Goexit")
				have(w, pid, runtime.Goexit)
				alive = false
				if have(w, pid, func() { alive = true }); alive != (name == "OffLoop") {
					t.Errorf("the actor goes on: %v", alive)
				}
			})
		})
	}
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		w.ExpectPanic("crashed")
		call(t, w, crash)
		w.ExpectPanic("Goexit")
		call(t, w, runtime.Goexit, rpc.HandlerConfig{OnLoop: true})
	})
}

// OnPanic gets all panics, with whose they were and the stack, and the test does not fail.
func TestOnPanic(t *testing.T) {
	var reported []eventloop.Panic
	actortest.Run(t, actortest.Config{OnPanic: func(p eventloop.Panic) { reported = append(reported, p) }}, func(w *actortest.World) {
		have(w, spawn(w, w.Runtime().OnLoop()), crash)
		have(w, spawn(w, w.Runtime().OffLoop()), crash)
		call(t, w, crash)
	})
	if len(reported) != 3 {
		t.Fatalf("%d panics were reported, want 3", len(reported))
	}
	for i, kind := range []string{"actor", "actor", "rpc handler"} {
		if p := reported[i]; p.Holder.Kind != kind || p.Value != "the server has crashed" || !strings.Contains(string(p.Stack), "crash(") {
			t.Errorf("panic %d: %v: %v\n%s", i, p.Holder, p.Value, p.Stack)
		}
	}
}

// A test that skips itself is skipped, and ends there, on whichever T it calls Skip.
func TestSkip(t *testing.T) {
	for name, skip := range map[string]func(t *testing.T, w *actortest.World){
		"outside": func(t *testing.T, w *actortest.World) { t.Skip("not today") },
		"inside":  func(_ *testing.T, w *actortest.World) { w.T().Skip("not today") },
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(inside) != "" {
				actortest.Run(t, actortest.Config{}, func(w *actortest.World) { converse(w); skip(t, w) })
				t.Error("the test has gone on")
				return
			}
			t.Parallel()
			out, err := alone(t)
			if err != nil || !strings.Contains(out, "--- SKIP: "+t.Name()) || !strings.Contains(out, "not today") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
