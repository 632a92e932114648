package actortest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid"
)

// inside is the environment variable of the processes that TestWrongsFail starts.
const inside = "ACTORTEST_INSIDE"

// wrong is a test that has to fail, and the expected part of its output.
type wrong struct {
	test func(t *testing.T, w *actortest.World)
	says []string
	not  string
}

var wrongs = map[string]wrong{
	"goroutine": {
		func(*testing.T, *actortest.World) { go blockForEver() },
		[]string{"left after the test: a goroutine that the test, or one of its actors, has started", "blockForEver"},
		"",
	},
	"retained": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w)
			c.client.Send(c.active, rdma.NewSend([]byte("keep me")))
			actortest.Next[*rdma.Received](c.server).Retain()
		},
		[]string{"left after the test: messages (1 *rdma.Received) that were retained and never released"},
		"left after the test: 1",
	},
	"retained beyond the connection": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w)
			c.client.Send(c.active, rdma.NewSend([]byte("keep me")))
			actortest.Next[*rdma.Received](c.server).Retain()
			c.client.Send(c.active, &rdma.Disconnect{})
			actortest.Next[*rdma.Disconnected](c.server)
			actortest.Next[*rdma.Closed](c.server)
		},
		[]string{"left after the test: messages (1 *rdma.Received) that were retained and never released"},
		"",
	},
	"other type": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w)
			c.client.Send(c.active, rdma.NewSend([]byte("first")))
			c.client.Send(c.active, rdma.NewSend([]byte("second")))
			c.client.Send(c.active, &rdma.Disconnect{})
			actortest.Next[*rdma.Closed](c.server)
		},
		[]string{
			`Next: got *rdma.Received (5 bytes, "first") from `, "want *rdma.Closed; behind it:",
			`*rdma.Received (6 bytes, "second")`, "*rdma.Disconnected (<nil>)",
		},
		"left after the test",
	},
	"failure": {
		func(_ *testing.T, w *actortest.World) {
			p := w.Probe()
			p.Request(w.CreateID(p.PID()), &rdma.Listen{})
			actortest.Next[*rdma.Listening](p)
		},
		[]string{"Next: got *rdma.CommandFailed (listen", "send BindAddr first", "want *rdma.Listening"},
		"",
	},
	"nothing": {
		func(_ *testing.T, w *actortest.World) {
			p := w.Probe()
			p.Request(w.CreateID(p.PID()), &rdma.Serve{Addr: server})
			actortest.Next[*rdma.Listening](p)
			actortest.Next[*rdma.ConnectRequest](p)
		},
		[]string{"Next: nothing came within 1m0s, want *rdma.ConnectRequest; probes:\n", ": 0 unread", "identifiers:\n", "listening for 1m0s, 10.0.0.1:7471", `time=0s level=DEBUG msg="rdma: listening"`},
		"",
	},
	"noise": {
		func(_ *testing.T, w *actortest.World) {
			p := w.Probe()
			p.Request(w.CreateID(p.PID()), &cmid.ResolveAddr{Dst: rdma.MustAddr("10.0.0.9:7471"), Timeout: 2 * time.Second})
			p.Silent(2 * time.Second)
		},
		[]string{"Silent(2s): after 2s got *rdma.AddrError (resolve_addr"},
		"",
	},
	"no device": {
		func(_ *testing.T, w *actortest.World) { w.RemoveDevice("mem1") },
		[]string{`RemoveDevice: there is no device "mem1"`},
		"",
	},
	"no identifier": {
		func(_ *testing.T, w *actortest.World) { w.Disconnect(w.Probe().PID()) },
		[]string{"Disconnect: there is no identifier", "; identifiers:"},
		"",
	},
	"panic": {
		func(*testing.T, *actortest.World) { panic("the test's own") },
		[]string{"panic: the test's own"},
		"left after the test",
	},
	"panic after an error": {
		func(t *testing.T, _ *actortest.World) { t.Error("before"); panic("the test's own") },
		[]string{"panic: the test's own"},
		"left after the test",
	},
	"fatal outside": {
		func(t *testing.T, w *actortest.World) { converse(w); t.Fatal("said outside") },
		[]string{"said outside"},
		"Goexit",
	},
	"fatal inside": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w)
			c.client.Send(c.active, rdma.NewSend([]byte("keep me")))
			actortest.Next[*rdma.Received](c.server).Retain()
			w.T().Fatal("said inside")
		},
		[]string{"said inside"},
		"left after the test",
	},
	"blocked loop": {
		func(_ *testing.T, w *actortest.World) { blockLoop(w) },
		[]string{"left after the test: an actor that blocks a loop", "actortest_test.blockForEver", "rdma: shutdown:", "those on a blocked loop"},
		"",
	},
	"blocked loop, asked": {
		func(_ *testing.T, w *actortest.World) { w.State(blockLoop(w)) },
		[]string{"actortest: there is an actor that blocks a loop", "actortest_test.blockForEver"},
		"left after the test",
	},
	"panic on the loop": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w)
			c.client.Send(c.active, rdma.NewSend([]byte("one too many")))
			w.Wait()
		},
		[]string{"has panicked: the observer has seen enough"},
		"",
	},
}

//go:noinline
func blockForEver() { select {} }

// blockLoop spawns an actor that breaks the rule of OnLoop.
func blockLoop(w *actortest.World) *actor.PID {
	return w.System().Root.Spawn(actor.PropsFromFunc(func(actor.Context) { blockForEver() }, w.Runtime().OnLoop()))
}

// fragile is an Observer that panics at the first message. It gets that outside of any actor.
type fragile struct{ trace }

func (f *fragile) Event(_ *actor.PID, ev rdma.Event) {
	if _, ok := ev.(*rdma.Received); ok {
		panic("the observer has seen enough")
	}
}

// Leaks and mistakes of a test are reported, and fail it.
func TestWrongsFail(t *testing.T) {
	fail(t, wrongs, func(name string) actortest.Config {
		if name == "panic on the loop" {
			return actortest.Config{Runtime: rdma.Config{Observer: &fragile{}}}
		}
		return actortest.Config{}
	})
}

// fail runs each in a separate process.
func fail(t *testing.T, wrongs map[string]wrong, cfg func(name string) actortest.Config) {
	t.Helper()
	for name, c := range wrongs {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(inside) != "" {
				actortest.Run(t, cfg(name), func(w *actortest.World) { c.test(t, w) })
				return
			}
			t.Parallel()
			out, err := alone(t)
			if err == nil {
				t.Errorf("it has passed")
			}
			for _, s := range c.says {
				if !strings.Contains(out, s) {
					t.Errorf("it does not say %q", s)
				}
			}
			if c.not != "" && strings.Contains(out, c.not) {
				t.Errorf("it says %q", c.not)
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// alone runs the calling test in another process.
func alone(t *testing.T) (out string, err error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	cmd := exec.Command(exe, "-test.run="+self, "-test.v", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), inside+"=1")
	b, err := cmd.CombinedOutput()
	return string(b), err
}

func none(string) actortest.Config { return actortest.Config{} }
