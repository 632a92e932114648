package actortest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/rpc"
)

// work keeps an actor busy for long.
type work struct{}

// slow works for 50 s.
func slow(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Accept{})
	case *work, *rdma.Received:
		nap()
	}
}

//go:noinline
func nap() { time.Sleep(50 * time.Second) }

// sleepers are tests in which a loop is blocked, and which would otherwise pass.
var sleepers = map[string]wrong{
	"a message of the test's": {
		func(_ *testing.T, w *actortest.World) {
			w.System().Root.Send(w.System().Root.Spawn(actor.PropsFromFunc(slow, w.Runtime().OnLoop())), &work{})
			w.Advance(time.Hour)
		},
		[]string{"actortest: runnable actor $", " at *actortest_test.work blocks the loop mem0, which went on after 50s", "actortest_test.nap("},
		"left after the test",
	},
	"a message of the device's": {
		func(_ *testing.T, w *actortest.World) {
			s, c := w.Probe(), w.Probe()
			far := w.Host("mem1", "10.0.0.2")
			s.Request(far.CreateID(s.PID(), rdma.IDConfig{Handler: actor.PropsFromFunc(slow)}), &rdma.Serve{Addr: ":7471"})
			actortest.Next[*rdma.Listening](s)
			id := w.CreateID(c.PID())
			c.Request(id, &rdma.Dial{Addr: "10.0.0.2:7471"})
			actortest.Next[*rdma.Established](c)
			c.Send(id, rdma.NewSend([]byte("take your time")))
			w.Advance(time.Minute)
		},
		[]string{"/handler-", " at *actor.Received blocks the loop mem1, which went on after 50s", "actortest_test.nap("},
		"left after the test",
	},
	"an rpc handler": {
		func(t *testing.T, w *actortest.World) { call(t, w, nap, rpc.HandlerConfig{OnLoop: true}) },
		[]string{"actortest: runnable rpc test.Do blocks the loop mem0, which went on after 50s", "actortest_test.nap("},
		"left after the test",
	},
	"it still sleeps at the end": {
		func(_ *testing.T, w *actortest.World) {
			w.System().Root.Send(w.System().Root.Spawn(actor.PropsFromFunc(slow, w.Runtime().OnLoop())), &work{})
		},
		[]string{" at *actortest_test.work blocks the loop mem0, which went on after 50s", "actortest_test.nap("},
		"",
	},
	"for ever": {
		func(_ *testing.T, w *actortest.World) { blockLoop(w) },
		[]string{" at *actor.Started blocks the loop mem0, which has not gone on after ", "actortest_test.blockForEver("},
		"",
	},
}

// What blocks a loop fails the test, although in virtual time it costs nothing.
func TestStallsFail(t *testing.T) { fail(t, sleepers, none) }

// Actors that are OffLoop may block.
func TestOffLoopMayBlock(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		for _, opts := range [][]actor.PropsOption{nil, {w.Runtime().OffLoop()}} {
			w.System().Root.Send(w.System().Root.Spawn(actor.PropsFromFunc(slow, opts...)), &work{})
		}
		call(t, w, nap)
		w.Advance(time.Minute)
	})
}

// A test that is about a blocked loop sets OnStall.
func TestOnStall(t *testing.T) {
	var reported []eventloop.Stall
	actortest.Run(t, actortest.Config{OnStall: func(s eventloop.Stall) { reported = append(reported, s) }}, func(w *actortest.World) {
		w.System().Root.Send(w.System().Root.Spawn(actor.PropsFromFunc(slow, w.Runtime().OnLoop())), &work{})
		w.Advance(time.Minute)
	})
	if len(reported) != 1 || !strings.HasSuffix(reported[0].Holder.Name, " at *actortest_test.work") {
		t.Errorf("reported: %v", reported)
	}
}
