package actortest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// waiting never returns.
//
//go:noinline
func waiting() { <-make(chan struct{}) }

// idle are tests that do nothing, or do not look at their messages.
var idle = map[string]wrong{
	"it waits, and keepalives go on": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w)
			c.client.Send(c.active, rdma.NewSend([]byte("unread")))
			go blockForEver()
			waiting()
		},
		[]string{
			"panic: actortest: TestIdleFail/", " waits for ever: for 24h0m0s of virtual time it has asked for nothing", "actortest_test.waiting(",
			"actortest_test.blockForEver(", "probes:\n", ": 1 unread\n", `(6 bytes, "unread")`, "identifiers:\n", "id 2, connected",
		},
		"test timed out",
	},
	"it waits, and nothing goes on": {
		func(*testing.T, *actortest.World) { waiting() },
		[]string{" waits for ever: for 24h0m0s of virtual time it has asked for nothing", "actortest_test.waiting(", "identifiers:", "none"},
		"test timed out",
	},
	"it waits for an actor that waits for it": {
		func(_ *testing.T, w *actortest.World) {
			in, out := make(chan int), make(chan int)
			w.System().Root.Spawn(actor.PropsFromFunc(func(actor.Context) { <-in; out <- 1 }, w.Runtime().OnLoop()))
			<-out
		},
		[]string{" waits for ever: ", "an actor that blocks a loop", "TestIdleFail", "probes:"},
		"test timed out",
	},
	"an answer that nobody reads": {
		func(_ *testing.T, w *actortest.World) {
			p := w.Probe()
			p.Request(w.CreateID(p.PID()), &rdma.Listen{})
		},
		[]string{" got 1 failures that Next has not returned (Probe.Ignore, if that is right):\n", "*rdma.CommandFailed (listen"},
		"",
	},
	"a World after its test": {
		func(t *testing.T, w *actortest.World) { t.Cleanup(func() { w.Advance(time.Second) }) },
		[]string{"panic: actortest: the World of TestIdleFail/a_World_after_its_test is used after its test function has ended"},
		"",
	},
	"another test's Probe": {
		func(t *testing.T, w *actortest.World) {
			p := w.Probe()
			t.Cleanup(func() { actortest.Next[any](p) })
		},
		[]string{"panic: actortest: the World of TestIdleFail/another_test's_Probe is used after its test function has ended"},
		"",
	},
}

// A test that waits forever ends, with a report of its waits; one that does not look has failed.
func TestIdleFail(t *testing.T) { fail(t, idle, none) }

// The code of a test may take as long as it needs.
func TestLongTimes(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		const year = 365 * 24 * time.Hour
		p := w.Probe()
		w.Advance(year)
		p.Silent(year)
		time.Sleep(23 * time.Hour)
		w.Wait()
		time.Sleep(23 * time.Hour)
		p.Ignore()
		p.Request(w.CreateID(p.PID()), &rdma.Listen{})
	})
}

// Worlds know nothing of each other: one after the other in a test, in subtests at the same time,
// on either T, and as a fuzz test runs them.
func TestSeveralWorlds(t *testing.T) {
	for range 2 {
		actortest.Run(t, actortest.Config{}, func(w *actortest.World) { converse(w) })
	}
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				if w.Latency("10.0.0.2", time.Duration(i)*time.Millisecond); i == 0 {
					w.Disconnect(converse(w).active)
				} else if converse(w); w.Elapsed() < 2*time.Duration(i)*time.Millisecond {
					t.Errorf("world %d is at %v", i, w.Elapsed())
				}
			})
		})
	}
}

func FuzzWorld(f *testing.F) {
	f.Add(uint64(1), "hello")
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		actortest.Run(t, actortest.Config{Seed: seed}, func(w *actortest.World) {
			c := converse(w)
			c.client.Send(c.active, rdma.NewSend([]byte(text)))
			if m := actortest.Next[*rdma.Received](c.server); string(m.Data) != text {
				t.Errorf("%q came as %q", text, m.Data)
			}
		})
	})
}
