package reconnect_test

import (
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// A peer that was killed is reported as lost, and dialled again. A peer that has sent a goodbye is
// dialled again, too, but that end is no failure.
func TestPeerIsLost(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		r.spawn(reconnect.Config{})
		conn, _ := r.accept()
		r.server.Request(conn, &rdma.DestroyID{})
		if _, d := r.untilDown(); d.Err != nil || d.NextTry.IsZero() {
			t.Errorf("behind a goodbye: %+v", d)
		}
		r.ended()
		r.accept()
		r.Crash("mem1")
		if _, d := r.untilDown(); !is(d.Err, rdma.ErrPeerLost) || !is(d.Err, unix.ECONNRESET) || d.NextTry.IsZero() {
			t.Errorf("without one: %+v", d)
		}
		r.far, r.server = r.Host("mem1", "10.0.0.2"), r.Probe()
		r.serve()
		r.accept()
	})
}
