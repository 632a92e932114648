package swarm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/workload"
)

// panicky is a workload with an actor that panics: an identifier's, or its owner.
type panicky struct {
	e     *workload.Env
	owner bool
	value any
}

// Start implements workload.Workload.
func (w *panicky) Start() {
	w.e.Start(0, func(p *world.Process) {
		rt, ok := w.e.Open(p, nil)
		if !ok {
			return
		}
		root := p.System().Root
		owner := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if s, ok := ctx.Message().(string); ok && s == "now" {
				panic(w.value)
			}
		}, rt.OnLoop()))
		if w.owner {
			root.Send(owner, "now")
			return
		}
		id := rt.CreateID(owner)
		root.Send(id, &rdma.Call{Fn: func(*cmid.ID) error { panic(w.value) }})
	})
}

// Done implements workload.Workload.
func (w *panicky) Done() bool { return w.e.World.Now() > time.Second }

// Check implements workload.Workload.
func (w *panicky) Check() {}

// TestPanics checks that a world fails when an actor panics, unless the panic is planned:
// supervisors would stop or restart the actor, and nothing else might reveal it.
func TestPanics(t *testing.T) {
	for _, c := range []struct {
		name  string
		owner bool
		value any
		fails bool
	}{
		{"identifier", false, errors.New("a defect"), true},
		{"owner", true, errors.New("a defect"), true},
		{"planned", true, errors.New("runtime.Goexit was called"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &workload.Kind{Name: "panics", New: func(e *workload.Env, _ []workload.Op) workload.Workload {
				return &panicky{e, c.owner, c.value}
			}}
			p := &Plan{Seed: 1, Machines: 1, Time: time.Second, parts: []part{{kind: k, name: "panics 1", port: 7000}}}
			r := p.Play(t, nil)
			if fails := strings.Contains(r.Failure, "a defect"); fails != c.fails || !fails && r.Failure != "" {
				t.Errorf("the world fails with %q", r.Failure)
			}
		})
	}
}
