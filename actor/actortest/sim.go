package actortest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/internal/sim/faults"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Sim is one seed's run of [Simulate]. The script sets it up, on one goroutine; then only Trace,
// Fail and Now may be called, by anybody.
type Sim struct {
	w          *world.World
	machines   []*Machine
	panics     *panics
	strays     strays
	invariants []invariant
	done       func() bool
}

// invariant is a condition that must hold after each step.
type invariant struct {
	name  string
	holds func() error
}

// Machine is a simulated computer, with one program. See [Sim.Machine].
type Machine struct {
	m     *world.Machine
	main  func(p *Process)
	now   *world.Process
	spare Faults
}

// Spare keeps faults from the machine: what hits it alone, such as Kill, and what hits its links,
// such as Cut. Delay, Scarce, Reorder and Suspend concern all machines.
func (m *Machine) Spare(f Faults) { m.spare |= f }

// Process is a run of a machine's program, from its start until it is killed.
type Process struct {
	p *world.Process
}

// Machine adds a machine with an address such as "10.0.0.1". When everything was set up, main is
// called there, on a goroutine of a new Process. It is called again, in another Process, when that
// one was killed.
func (s *Sim) Machine(name, addr string, main func(p *Process)) *Machine {
	m := &Machine{m: s.w.Machine(name, addr+"/24"), main: main}
	s.machines = append(s.machines, m)
	return m
}

// Invariant has holds called after everything that happens. It fails the run by an error.
func (s *Sim) Invariant(name string, holds func() error) {
	s.invariants = append(s.invariants, invariant{name, holds})
}

// Done sets the condition that the program has finished. It is asked between two things that
// happen. A Sim without it ends after Simulation.Time, or when the last fault has.
func (s *Sim) Done(done func() bool) { s.done = done }

// Now is the virtual time since the beginning.
func (s *Sim) Now() time.Duration { return s.w.Now() }

// Trace adds a line to the trace, which must be the same in each run of a seed: without real times,
// and without anything in the order of a map.
func (s *Sim) Trace(format string, args ...any) { s.w.Trace(format, args...) }

// Fail fails the run. The first call counts.
func (s *Sim) Fail(format string, args ...any) { s.w.Fail(format, args...) }

// Open is rdma.Open: cfg's Limits, Timeouts, Keepalive and Observer count, and the number of its
// Loops. The device, the loops themselves and the logger are the simulation's, which also shuts the
// Runtime down at the end. When the simulation ends at that moment, Open ends the goroutine.
func (p *Process) Open(cfg ...rdma.Config) (*rdma.Runtime, error) {
	rt, err := p.p.Open(optional.Value(cfg))
	if err != nil && p.p.Context().Err() != nil {
		runtime.Goexit()
	}
	return rt, err
}

// System is the process's actor system. Actors run on a Runtime's loops ([rdma.Runtime.OnLoop]) or
// off them ([rdma.Runtime.OffLoop]); those with Proto.Actor's own mailbox run when they like, so
// that a seed does not decide everything.
func (p *Process) System() *actor.ActorSystem { return p.p.System() }

// Name is the machine's name with the number of the process.
func (p *Process) Name() string { return p.p.Name() }

// Context ends when the simulation does, as at SIGTERM. It does not end when the process is killed.
func (p *Process) Context() context.Context { return p.p.Context() }

// Go runs fn on a goroutine of the process, in place of a go statement. What fn waits for should be
// this module's (a call, a Read, a Dial), or Sleep.
func (p *Process) Go(fn func()) { p.p.Go(fn) }

// Sleep is time.Sleep, for main and for goroutines of Go.
func (p *Process) Sleep(d time.Duration) { p.p.Sleep(d) }

// Rand gives random numbers that the seed decides.
func (p *Process) Rand() *rand.Rand { return p.p.Rand() }

// startProgram starts a machine's program, if it does not run.
func (s *Sim) startProgram(m *Machine) {
	if m.now == nil || m.now.Dead() {
		m.now = m.m.Start(func(p *world.Process) { m.main(&Process{p}) })
		m.now.System().EventStream.Subscribe(s.panics.handleEvent)
		s.strays.watchProcess(m.now, s.w)
	}
}

// failOnPanic fails the run.
func (s *Sim) failOnPanic(p eventloop.Panic) {
	s.w.Fail("%v has panicked: %v\n%s", p.Holder, p.Value, p.Stack)
}

// failureHandler returns a handler that looks for failed actors in the log of a process.
func (s *Sim) failureHandler(h slog.Handler) slog.Handler {
	return world.Failures(h, s.panics.handlePanic)
}

// fault is a fault that was drawn.
type fault struct {
	kind *faults.Kind
	at   time.Duration
	span time.Duration
	a, b *Machine
}

// String describes the fault.
func (f *fault) String() string { return fmt.Sprintf("%s %s", f.a.m.Name(), f.kind.Name) }

// drawFaults draws some kinds of faults, and then faults of these kinds.
func drawFaults(r *rand.Rand, cfg Simulation, s *Sim) (all []*fault) {
	var kinds []*faults.Kind
	for _, k := range faults.Of(s.w.Kind()) {
		if cfg.Faults&Faults(k.Class) != 0 && r.IntN(2) == 0 {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 || len(s.machines) < 2 {
		return nil
	}
	for range 1 + r.IntN(8) {
		f := &fault{kind: kinds[r.IntN(len(kinds))], at: time.Duration(r.Int64N(int64(cfg.Time)))}
		f.span = time.Duration(r.Int64N(int64(f.kind.Lasts) + 1))
		i := r.IntN(len(s.machines))
		f.a = s.machines[i]
		f.b = s.machines[(i+1+r.IntN(len(s.machines)-1))%len(s.machines)]
		if f.a.spare&Faults(f.kind.Class) == 0 && (f.kind.Class != faults.Cut || f.b.spare&Cut == 0) {
			all = append(all, f)
		}
	}
	return all
}

// runFaults plays the simulation with the given faults.
func (s *Sim) runFaults(p *player, all []*fault) {
	for _, m := range s.machines {
		s.startProgram(m)
	}
	end := time.Duration(0)
	if s.done == nil {
		end = p.cfg.Time
	}
	for i, f := range all {
		if !p.without[i] {
			end = max(end, f.at+f.span)
			s.scheduleFault(f, rand.New(rand.NewPCG(p.seed, uint64(i+1))))
		}
	}
	s.runUntil(end, func() bool { return false })
	s.stopFaults()
	if s.done != nil && !s.runUntil(p.cfg.Patience, s.done) {
		s.w.Fail("not done %v after the last fault", p.cfg.Patience)
	}
}

// scheduleFault schedules a fault for its time.
func (s *Sim) scheduleFault(f *fault, r *rand.Rand) {
	scene := &faults.Scene{
		World: s.w, Rand: r, A: f.a.m, B: f.b.m,
		Kill: func(m *world.Machine) {
			for _, p := range m.Processes() {
				p.Kill()
			}
		},
		Restart: s.restartProgram,
	}
	s.w.After(f.at, f.String(), func() {
		f.kind.Begin(scene)
		if f.kind.End != nil {
			s.w.After(f.span, f.String()+" no more", func() { f.kind.End(scene) })
		}
	})
}

// restartProgram starts the killed program of a machine.
func (s *Sim) restartProgram(m *world.Machine) {
	for _, x := range s.machines {
		if x.m == m && !m.Off() {
			s.startProgram(x)
		}
	}
}

// stopFaults stops all faults.
func (s *Sim) stopFaults() {
	var all []*world.Machine
	for _, m := range s.machines {
		all = append(all, m.m)
	}
	s.w.Trace("no more faults")
	faults.Calm(s.w, all, s.restartProgram)
}

// runUntil runs steps until done, for d at most, and checks the invariants all the time.
func (s *Sim) runUntil(d time.Duration, done func() bool) bool {
	return s.w.RunUntil(d, func() bool {
		for _, i := range s.invariants {
			if err := i.holds(); err != nil {
				s.w.Fail("%s: %v", i.name, err)
				return false
			}
		}
		return done()
	})
}
