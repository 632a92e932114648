package workload

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Env is the environment of a Workload in its world.
type Env struct {
	World *world.World
	// Name names the workload in the trace and in failures, such as "calls 2".
	Name string
	// Machines are shared with the other workloads.
	Machines []*world.Machine
	// Config is the configuration with which its processes open their runtimes
	// (world.Process.Open): drawn limits and timeouts, and the number of loops.
	Config rdma.Config
	// Security is how the connections of all its processes are secured.
	Security Security
	// Port is the first of the workload's 100 ports on each machine.
	Port int
	// Rand is the workload's source of random decisions that need not be drawn in advance.
	Rand *rand.Rand
	// Patience is how long everything may take after the last fault.
	Patience time.Duration
	// Programs are the programs that the workload has started, in that order.
	Programs []*Program

	disturbed []bool // per machine
	broken    []bool // per machine: a fault that was not only a delay
	obstructs []bool // per machine
	attacks   []attack
	calm      bool
	calmed    time.Duration
}

// attack is a change of messages between one machine and a port of another one.
type attack struct {
	machine int
	with    netip.AddrPort
}

// Program is a program of a workload on a machine: a process, and after a crash another one.
type Program struct {
	*world.Process // the newest
	Machine        int
	Killed         bool // the newest was killed
	Finished       bool // its work is done: it does not run again after a crash
	main           func(p *world.Process)
}

// areFinished reports whether all programs but the first ones are finished.
func (e *Env) areFinished(first int) bool {
	return !slices.ContainsFunc(e.Programs[first:], func(g *Program) bool { return !g.Finished })
}

// Start starts a program: main runs in a process of the machine with the given index. After a crash
// it runs again, in a new process, unless the program is finished.
func (e *Env) Start(machine int, main func(p *world.Process)) *Program {
	g := &Program{Machine: machine, main: main}
	e.Programs = append(e.Programs, g)
	g.Restart(e)
	return g
}

// Restart starts the program again after its process was killed. Processes that were killed before
// they started run at the end of the world, for their shutdown, but must not start the program.
func (g *Program) Restart(e *Env) {
	g.Process, g.Killed = e.Machines[g.Machine].Start(func(p *world.Process) {
		if g.Process == p && !g.Killed && !g.Finished {
			g.main(p)
		}
	}), false
}

// Open opens a runtime with Config and an observer, which may be nil. While memory or descriptors
// are scarce it tries again; any other failure ends the world. ok is false if it failed.
func (e *Env) Open(p *world.Process, o rdma.Observer) (rt *rdma.Runtime, ok bool) {
	cfg := e.Config
	cfg.Observer = o
	return e.openWith(p, cfg)
}

// openWith calls openRuntime with another Config.
func (e *Env) openWith(p *world.Process, cfg rdma.Config) (rt *rdma.Runtime, ok bool) {
	e.addSecurity(p, &cfg)
	for {
		rt, err := p.Open(cfg)
		_, calm := e.Calm()
		switch {
		case err == nil:
			return rt, true
		case p.Context().Err() != nil:
			return nil, false
		case calm || !e.Disturbed():
			e.failWorld("%s: open: %v", p.Name(), err)
			return nil, false
		}
		p.Sleep(time.Second)
	}
}

// IP returns the address of a machine.
func (e *Env) IP(machine int) string { return machineAddr(machine) }

func machineAddr(machine int) string { return fmt.Sprintf("10.0.0.%d", machine+1) }

// Addr returns the address of a workload's service: the nth of its ports on a machine.
func (e *Env) Addr(machine, n int) string { return fmt.Sprintf("%s:%d", e.IP(machine), e.Port+n) }

// Disturb records a fault that hits a machine, its processes or its links.
func (e *Env) Disturb(machine int) {
	e.markMachine(&e.disturbed, machine)
	e.markMachine(&e.broken, machine)
}

// Delay records that a machine's processes stand still, for less than 10 s. Its kernel continues.
func (e *Env) Delay(machine int) { e.markMachine(&e.disturbed, machine) }

// Obstruct records that connects to a machine are obstructed, and need a second attempt.
func (e *Env) Obstruct(machine int) { e.markMachine(&e.obstructs, machine) }

// Attacked records that a message from one address to the other was changed. It does nothing if
// neither address is the workload's.
func (e *Env) Attacked(from, to netip.AddrPort) {
	for _, x := range [...][2]netip.AddrPort{{from, to}, {to, from}} {
		if port := int(x[1].Port()); port >= e.Port && port < e.Port+ports {
			e.attacks = append(e.attacks, attack{e.machineAt(x[0].Addr()), x[1]})
		}
	}
}

// ports is the number of a workload's ports.
const ports = 100

// machineAt returns the machine with an address; -1: none.
func (e *Env) machineAt(a netip.Addr) (machine int) {
	for m := range e.Machines {
		if e.IP(m) == a.String() {
			return m
		}
	}
	return -1
}

func (e *Env) markMachine(all *[]bool, machine int) {
	if *all == nil {
		*all = make([]bool, len(e.Machines))
	}
	(*all)[machine] = true
}

// Disturbed reports whether a fault has hit any of the machines (or any machine at all, if none is
// given), or an attack a connection of the workload there. A connection between machines that were
// never disturbed must live.
func (e *Env) Disturbed(machines ...int) bool {
	if len(machines) == 0 {
		return slices.Contains(e.disturbed, true) || len(e.attacks) > 0
	}
	return e.wasHit(machines...) || slices.ContainsFunc(e.attacks, func(a attack) bool {
		return slices.Contains(machines, a.machine) || slices.Contains(machines, e.machineAt(a.with.Addr()))
	})
}

// DisturbedTo is Disturbed for the connections of a machine to the nth of the workload's ports on
// another one: attacks on others do not count.
func (e *Env) DisturbedTo(n int, from, to int) bool {
	return e.wasHit(from, to) || e.AttackedTo(n, from, to)
}

// AttackedTo reports whether messages of such a connection were changed.
func (e *Env) AttackedTo(n int, from, to int) bool {
	return slices.ContainsFunc(e.attacks, func(a attack) bool {
		return a.machine == from && a.with.String() == e.Addr(to, n)
	})
}

// wasHit reports whether a fault has hit any of the machines.
func (e *Env) wasHit(machines ...int) bool {
	return e.disturbed != nil && slices.ContainsFunc(machines, func(m int) bool { return e.disturbed[m] })
}

// Broken is Disturbed for one machine, without delays and attacks.
func (e *Env) Broken(machine int) bool { return e.broken != nil && e.broken[machine] }

// Obstructed reports whether connects to the machine were obstructed.
func (e *Env) Obstructed(machine int) bool { return e.obstructs != nil && e.obstructs[machine] }

// Rest records that no more faults happen.
func (e *Env) Rest() {
	if !e.calm {
		e.calm, e.calmed = true, e.World.Now()
	}
}

// Calm reports whether no more faults happen, and since when.
func (e *Env) Calm() (since time.Duration, ok bool) { return e.calmed, e.calm }
