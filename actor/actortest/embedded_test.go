package actortest_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid"
)

// TestDefaultIsTheEmbeddedDevice: by default an application gets the events of package iwarp.
func TestDefaultIsTheEmbeddedDevice(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		w.Host("mem1", "10.0.0.2")
		p := w.Probe()
		p.Request(w.CreateID(p.PID()), &rdma.Dial{Addr: "10.0.0.2:7471"})
		e := actortest.Next[*rdma.Rejected](p)
		if e.Reason != cmid.RejectRefused || e.Status != -111 || !errors.Is(e, unix.ECONNREFUSED) {
			t.Errorf("nobody listens: %v, reason %d, want -111", e, e.Reason)
		}
		actortest.Next[*rdma.Closed](p)

		p.Request(w.CreateID(p.PID()), &rdma.Dial{Addr: "10.0.0.2:7471", PrivateData: make([]byte, 237)})
		if e := actortest.Next[*rdma.CommandFailed](p); !errors.Is(e, unix.EINVAL) {
			t.Errorf("237 bytes and the hello are more than 248: %v", e)
		}
		actortest.Next[*rdma.Closed](p)
	})
}
