package actortest_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/states"
)

func TestResolveTimesOut(t *testing.T) {
	actortest.Run(t, func(w *actortest.World) { // synctest bubble, in-memory twin, scripted faults; ends with a leak check
		p := w.Probe()
		id := w.CreateID(p.PID())
		w.Silence("10.0.0.9")
		p.Request(id, &rdma.ResolveAddr{Dst: rdma.MustAddr("10.0.0.9:7471"), Timeout: 2 * time.Second})
		e := actortest.Next[*rdma.AddrError](p)
		if !errors.Is(e, unix.ETIMEDOUT) || w.Elapsed() != 2*time.Second || w.State(id) != states.Bound {
			t.Fatal(e)
		}
		w.RemoveDevice("mem0") // likewise: Drop, Delay, Reorder, Disconnect, RunOut(EMFILE)
	})
}
