package actortest_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/states"
)

// vain has tests whose faults never happen.
var vain = map[string]wrong{
	"a message that iWARP does not have": {
		func(_ *testing.T, w *actortest.World) { w.Drop(cmidtest.MsgRTU, 1); converse(w) },
		[]string{"actortest: Drop(MsgRTU, 1) has never happened"},
		"",
	},
	"more than there were": {
		func(_ *testing.T, w *actortest.World) {
			c := converse(w)
			w.Drop(cmidtest.MsgSend, 3)
			c.client.Send(c.active, rdma.NewSend(nil))
			c.client.Silent(time.Second)
		},
		[]string{"actortest: Drop(MsgSend, 3) has happened 1 times only"},
		"",
	},
	"no message": {
		func(_ *testing.T, w *actortest.World) { w.Drop(cmidtest.MsgSend, 0) },
		[]string{"actortest: Drop(MsgSend, 0) loses nothing"},
		"",
	},
	"an address that nobody uses": {
		func(_ *testing.T, w *actortest.World) { w.Silence("10.0.0.22"); converse(w) },
		[]string{`actortest: Silence("10.0.0.22") has never happened`},
		"",
	},
	"the latency of nobody": {
		func(_ *testing.T, w *actortest.World) { w.Latency("10.0.0.22", time.Second); converse(w) },
		[]string{`actortest: Latency("10.0.0.22", 1s) has never happened`},
		"",
	},
	"nothing is made": {
		func(_ *testing.T, w *actortest.World) { converse(w); w.RunOut(unix.EMFILE); w.Advance(time.Second) },
		[]string{"actortest: RunOut(EMFILE) has never happened"},
		"",
	},
	"nothing is said": {
		func(_ *testing.T, w *actortest.World) {
			converse(w)
			w.Cut("mem0", "mem1")
			w.Advance(time.Second)
			w.Heal("mem0", "mem1")
		},
		[]string{"actortest: Cut between the host and the host mem1 has never happened"},
		"",
	},
	"it was not silent": {
		func(_ *testing.T, w *actortest.World) { w.Silence("10.0.0.2"); w.Unsilence("10.0.0.3") },
		[]string{"actortest: Unsilence: 10.0.0.3 is not silent"},
		"",
	},
	"no connection to break": {
		func(_ *testing.T, w *actortest.World) { w.Disconnect(converse(w).heard) },
		[]string{"actortest: Disconnect: rdma$", "has no connection, it is listening"},
		"",
	},
	"the state of nobody": {
		func(_ *testing.T, w *actortest.World) {
			converse(w)
			if s := w.State(w.System().NewLocalPID("server")); s != states.Destroying {
				w.T().Error(s)
			}
		},
		[]string{"actortest: State: ", `"server"`, "is no identifier's PID; identifiers:", "/id-1: id 1, listening"},
		"",
	},
	"the state of an owner": {
		func(_ *testing.T, w *actortest.World) { c := converse(w); w.State(c.client.PID()) },
		[]string{"is no identifier's PID; identifiers:", "/id-1: id 1, listening"},
		"",
	},
	"the state of nil": {
		func(_ *testing.T, w *actortest.World) { var none *actor.PID; w.State(none) },
		[]string{"is no identifier's PID; identifiers:"},
		"panic",
	},
}

// A test that asks for something which does not happen has not tested it.
func TestMissedFaultsFail(t *testing.T) { fail(t, vain, none) }

// A fault that is Optional need not happen, and faults that have happened are not reported.
func TestOptionalFaults(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		w.Drop(cmidtest.MsgRTU, 1).Optional()
		w.Silence("10.0.0.22").Optional()
		w.Latency("10.0.0.22", time.Second).Optional()
		w.Latency("10.0.0.22", 0)
		w.Latency("10.0.0.2", time.Second)
		c := converse(w)
		w.Cut("mem0", "mem1").Optional()
		w.Heal("mem0", "mem1")
		w.Drop(cmidtest.MsgSend, 1)
		w.Drop(cmidtest.MsgSend, 1)
		for range 2 {
			c.client.Send(c.active, rdma.NewSend(nil))
		}
		c.server.Silent(10 * time.Second)
		w.RunOut(unix.EMFILE).Optional()
		w.RunOut(0)
	})
}
