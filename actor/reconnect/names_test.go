package reconnect_test

import (
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// Dial.Timeout is shared out over the addresses of a name, of which one may be silent. The next
// dial begins with the address that worked last.
func TestSilentAddressOfAName(t *testing.T) {
	onFlavors(t, func(r *rig) {
		const silent = "10.0.0.66"
		w := r.Probe()
		w.Request(r.Host("mem2", silent).CreateID(w.PID(), rdma.IDConfig{AcceptTimeout: time.Hour}), &rdma.Serve{Addr: ":7471"})
		actortest.Next[*rdma.Listening](w)
		r.Name("svc", silent, "10.0.0.2")
		r.serve()
		r.spawn(reconnect.Config{Dial: rdma.Dial{Addr: "svc:7471", Timeout: 5 * time.Second}})
		conn, _ := r.accept()
		for range 3 {
			begin := r.Elapsed()
			r.server.Request(conn, &rdma.DestroyID{})
			actortest.Next[*rdma.Closed](r.server)
			conn, _ = r.accept()
			if d := r.Elapsed() - begin; d >= 2*time.Second {
				r.t.Errorf("it was connected again after %v: it has tried the silent address first", d)
			}
		}
	})
}
