package swarm

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sim/faults"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/workload"
)

// patience is how long a world's programs may take after the last fault.
const patience = 3 * time.Minute

// play is a plan in play.
type play struct {
	*Plan
	w        *world.World
	machines []*world.Machine
	envs     []*workload.Env
	running  []workload.Workload
}

// Play plays the plan once. print is called with the lines of the trace; nil: none.
func (p *Plan) Play(t *testing.T, print func(line string)) world.Result {
	t.Helper()
	y := &play{Plan: p}
	return world.Run(t, world.Config{Seed: p.Seed, Kind: p.Kind, Print: print, Log: y.failureHandler}, y.runScript)
}

// failureHandler returns a handler that fails the world when an actor fails unexpectedly. The
// supervisor of an identifier would stop it, and the rest of the world might continue.
func (y *play) failureHandler(h slog.Handler) slog.Handler {
	return world.Failures(h, func(p eventloop.Panic) {
		if !workload.Planned(p.Value) {
			y.w.Fail("%v has failed: %v\n%s", p.Holder, p.Value, p.Stack)
		}
	})
}

// runScript plays a world from its beginning to its end.
func (y *play) runScript(w *world.World) {
	y.w = w
	for n := range y.Machines {
		y.machines = append(y.machines, w.Machine(fmt.Sprintf("m%d", n+1), fmt.Sprintf("10.0.0.%d/24", n+1)))
	}
	if y.onPath {
		w.OnPath(y.notifyAttacked)
	}
	w.Latency(y.Latency, y.Latency/2, 0)
	for i := range y.parts {
		y.startPart(&y.parts[i])
	}
	calm := y.Time
	for i := range y.faults {
		calm = max(calm, y.scheduleFault(&y.faults[i]))
	}
	w.RunFor(calm)
	w.Trace("no more faults")
	faults.Calm(w, y.machines, y.restartPrograms)
	w.Latency(y.Latency, y.Latency/2, 0)
	for _, e := range y.envs {
		e.Rest()
	}
	if !w.RunUntil(patience, y.allDone) && !w.Failed() {
		for i, x := range y.running {
			if !x.Done() {
				w.Fail("%s is not done, %v after the last fault", y.envs[i].Name, patience)
			}
		}
	}
	for _, x := range y.running {
		if !w.Failed() {
			x.Check()
		}
	}
}

// startPart starts a workload.
func (y *play) startPart(x *part) {
	if x.kind == nil {
		return
	}
	e := &workload.Env{
		World: y.w, Name: x.name, Machines: y.machines, Config: y.Config, Security: y.Security,
		Port: x.port, Rand: newRand(y.Seed, x.name+" plays"), Patience: patience,
	}
	var ops []workload.Op
	for _, op := range x.ops {
		if op != nil {
			ops = append(ops, op)
		}
	}
	run := x.kind.New(e, ops)
	y.envs, y.running = append(y.envs, e), append(y.running, run)
	run.Start()
}

func (y *play) allDone() bool {
	for _, x := range y.running {
		if !x.Done() {
			return false
		}
	}
	return true
}
