package swarm

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/faults"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/workload"
)

// fault is a fault of a plan.
type fault struct {
	kind *faults.Kind // nil: left out
	n    int          // number within the plan
	at   time.Duration
	span time.Duration // how long it lasts
	a, b int           // two different machines
}

// drawFaults draws faults of a few kinds, and none in a third of the worlds. A third of the worlds
// with the embedded device have an additional fault, aimed at the set-up of connections.
func drawFaults(r *rand.Rand, p *Plan) (drawn []fault) {
	all := faults.Of(p.Kind)
	kinds := r.Perm(len(all))[:1+r.IntN(3)]
	n := 1 + drawBetween(r, 0, 8)
	if p.Kind == world.Embedded && r.IntN(3) == 0 {
		k := faults.InSetUp[r.IntN(len(faults.InSetUp))]
		// long enough for a stopped machine to continue without another fault
		drawn = append(drawn, fault{kind: k, a: r.IntN(p.Machines), span: p.Time + 10*time.Second})
	}
	if r.IntN(3+len(drawn)) < 1+len(drawn) {
		return drawn
	}
	for i := range n {
		f := fault{kind: all[kinds[r.IntN(len(kinds))]], n: i + 1, a: r.IntN(p.Machines)}
		f.b = (f.a + 1 + r.IntN(p.Machines-1)) % p.Machines
		f.at = drawBetween(r, time.Second/2, time.Second/2+p.Time)
		f.span = drawBetween(r, 0, max(f.kind.Lasts, time.Millisecond))
		drawn = append(drawn, f)
	}
	return drawn
}

// drawAttacks draws the faults of a man in the middle.
func drawAttacks(r *rand.Rand, p *Plan) (drawn []fault) {
	kinds := faults.OnPath(p.Kind)
	for i := range 4 + r.IntN(12) {
		k := kinds[r.IntN(len(kinds))]
		f := fault{kind: k, n: 1000 + i, a: r.IntN(p.Machines)}
		f.b = (f.a + 1) % p.Machines
		f.at = drawBetween(r, 0, p.Time)
		drawn = append(drawn, f)
	}
	return drawn
}

// isAttackable reports whether everything that is sent is protected.
func (p *Plan) isAttackable() bool {
	return p.Security.Secured() && !p.Security.OneSided
}

// String describes the fault; it is empty for a fault that was left out.
func (f *fault) String() string {
	if f.kind == nil {
		return ""
	}
	s := f.targetName() + " " + f.kind.Name
	if f.kind.End != nil {
		s += fmt.Sprintf(", for %v", f.span)
	}
	return s
}

// targetName names the target of the fault.
func (f *fault) targetName() string {
	switch f.kind.Hits {
	case faults.First, faults.Peers, faults.Late, faults.Nobody, faults.Attacked:
		return fmt.Sprintf("m%d", f.a+1)
	case faults.Link:
		return fmt.Sprintf("m%d, seen from m%d,", f.a+1, f.b+1)
	}
	return "everything"
}

// scheduleFault schedules a fault, and returns when it is over.
func (y *play) scheduleFault(f *fault) (end time.Duration) {
	if f.kind == nil {
		return 0
	}
	s := &faults.Scene{
		World: y.w, Rand: newRand(y.Seed, fmt.Sprint("fault ", f.n)), Latency: y.Latency,
		A: y.machines[f.a], B: y.machines[f.b], Kill: y.killPrograms, Restart: y.restartPrograms,
	}
	y.w.After(f.at, f.String(), func() {
		y.notifyDisturbed(f)
		f.kind.Begin(s)
	})
	if f.kind.End == nil {
		return f.at
	}
	y.w.After(f.at+f.span, "over: "+f.String(), func() { f.kind.End(s) })
	return f.at + f.span
}

// notifyDisturbed notifies the workloads of the machines that a fault hits.
func (y *play) notifyDisturbed(f *fault) {
	if f.kind.Hits == faults.Attacked || f.kind.Hits == faults.Peers && !y.machines[f.a].Connected() {
		return
	}
	for _, e := range y.envs {
		switch f.kind.Hits {
		case faults.Nobody:
			e.Obstruct(f.a)
			continue
		case faults.Late:
			e.Delay(f.a)
			continue
		}
		for m := range y.machines {
			if f.kind.Hits == faults.All || m == f.a || m == f.b && f.kind.Hits == faults.Link {
				e.Disturb(m)
			}
		}
	}
}

// notifyAttacked notifies the workloads that bytes of a connection were changed. It concerns the
// workload whose listener has the port.
func (y *play) notifyAttacked(from, to netip.AddrPort) {
	for _, e := range y.envs {
		e.Attacked(from, to)
	}
}

// eachProgram calls fn for all programs on a machine.
func (y *play) eachProgram(m *world.Machine, fn func(i int, g *workload.Program)) {
	for i, e := range y.envs {
		for _, g := range e.Programs {
			if y.machines[g.Machine] == m {
				fn(i, g)
			}
		}
	}
}

// killPrograms kills the programs on a machine, and notifies the workloads.
func (y *play) killPrograms(m *world.Machine) {
	y.eachProgram(m, func(i int, g *workload.Program) {
		if g.Killed {
			return
		}
		g.Killed = true
		g.Kill()
		if k, ok := y.running[i].(workload.Killer); ok {
			k.Killed(g.Process)
		}
	})
}

// restartPrograms starts the killed programs of a machine again, if it is on.
func (y *play) restartPrograms(m *world.Machine) {
	y.eachProgram(m, func(i int, g *workload.Program) {
		if g.Killed && !m.Off() {
			g.Restart(y.envs[i])
		}
	})
}
