package swarm

import (
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/faults"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/workload"
)

// listening is a workload with a listener on the first machine. If connects is set, the second
// machine connects to it. In the end it reports whether its first machine was disturbed.
type listening struct {
	e         *workload.Env
	connects  bool
	disturbed *bool
}

// Start implements workload.Workload.
func (w *listening) Start() {
	cmd := func(m int, c rdma.Command) {
		w.e.Start(m, func(p *world.Process) {
			rt, ok := w.e.Open(p, nil)
			if !ok {
				return
			}
			p.Sleep(time.Duration(m) * time.Second / 2) // so that the first machine already listens
			root := p.System().Root
			owner := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
					ctx.Respond(&rdma.Accept{})
				}
			}, rt.OnLoop()))
			root.RequestWithCustomSender(rt.CreateID(owner), c, owner)
		})
	}
	cmd(0, &rdma.Serve{Addr: w.e.Addr(0, 0)})
	if w.connects {
		cmd(1, &rdma.Dial{Addr: w.e.Addr(0, 0)})
	}
}

// Done implements workload.Workload.
func (w *listening) Done() bool { return true }

// Check implements workload.Workload.
func (w *listening) Check() { *w.disturbed = w.e.Disturbed(0) }

// TestResetDisturbsPeers checks that a reset excuses events on a machine only if the machine has a
// connection that could be reset.
func TestResetDisturbsPeers(t *testing.T) {
	all := faults.Of(world.Embedded)
	reset := all[slices.IndexFunc(all, func(k *faults.Kind) bool { return k.Name == "has a connection reset" })]
	for _, connects := range []bool{false, true} {
		disturbed := false
		k := &workload.Kind{Name: "listening", New: func(e *workload.Env, _ []workload.Op) workload.Workload {
			return &listening{e, connects, &disturbed}
		}}
		p := &Plan{
			Seed: 1, Kind: world.Embedded, Machines: 2, Time: time.Second,
			parts:  []part{{kind: k, name: "listening 1", port: 7000}},
			faults: []fault{{kind: reset, n: 1, at: time.Second, b: 1}},
		}
		if r := p.Play(t, nil); r.Failure != "" || disturbed != connects {
			t.Errorf("with a connection %v: disturbed is %v (%s)", connects, disturbed, r.Failure)
		}
	}
}
