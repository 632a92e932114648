package remoting_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/remoting"
)

// A node whose name has a silent address before the one where it listens is reached within
// Patience.
func TestSilentAddressOfANode(t *testing.T) {
	for name, patience := range map[string]time.Duration{"by default": 0, "with little Patience": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				listen := func(device, addr string) *actortest.Probe {
					p := w.Probe()
					p.Request(w.Host(device, addr).CreateID(p.PID(), rdma.IDConfig{AcceptTimeout: time.Hour}), &rdma.Serve{Addr: ":7471"})
					actortest.Next[*rdma.Listening](p)
					return p
				}
				listen("mem1", "10.0.0.66") // never answers
				node := listen("mem2", "10.0.0.2")
				w.Name("svc", "10.0.0.66", "10.0.0.2")
				n, err := remoting.Start(w.Runtime(), remoting.Config{Name: "10.0.0.1:7471", Patience: patience})
				if err != nil {
					w.T().Fatal(err)
				}
				w.System().Root.Send(actor.NewPID("svc:7471", "x"), text("hello"))
				actortest.Next[*rdma.ConnectRequest](node)
				_ = n.Shutdown(w.T().Context())
			})
		})
	}
}
