package world

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Machine is a computer with addresses, and at most one RDMA device.
type Machine struct {
	w     *World
	name  string
	addrs []string
	host  *cmidtest.Host // of twins
}

// Machine adds a machine. Addresses are like "10.0.0.1/24".
func (w *World) Machine(name string, addrs ...string) *Machine {
	m := &Machine{w: w, name: name, addrs: addrs}
	w.machines = append(w.machines, m)
	if w.fabric != nil {
		m.host = w.fabric.Host(name)
		m.host.AddDevice(name, addrs...)
	}
	return m
}

// Process is a program on a machine.
type Process struct {
	w       *World
	m       *Machine
	name    string
	number  int
	sys     *actor.ActorSystem
	rts     []*rdma.Runtime
	pollers []*poller
	source  rand.Source
	started int // tasks
	frozen  bool
	dead    bool
}

// Start starts a program: main runs on a goroutine of the process.
func (m *Machine) Start(main func(p *Process)) *Process {
	w := m.w
	p := &Process{w: w, m: m, number: len(w.procs) + 1}
	p.name = fmt.Sprintf("%s.%d", m.name, p.number)
	p.source = rand.NewPCG(w.cfg.Seed, uint64(p.number))
	w.procs = append(w.procs, p)
	p.sys = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return p.logger() }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	p.Go(func() { main(p) })
	return p
}

// Name is the process's name: its machine's, and a number.
func (p *Process) Name() string { return p.name }

// World is where the process runs.
func (p *Process) World() *World { return p.w }

// System is the process's actor system.
func (p *Process) System() *actor.ActorSystem { return p.sys }

// Rand gives random numbers of the process's.
func (p *Process) Rand() *rand.Rand { return rand.New(p.source) }

// Open is rdma.Open with the process's device, loops and logger in cfg: cfg.Loops says how many
// loops there are. The World shuts the runtime down at the end.
func (p *Process) Open(cfg rdma.Config) (*rdma.Runtime, error) {
	cfg.Device = p.device()
	cfg.Loops = make([]eventloop.Config, max(len(cfg.Loops), 1))
	for i := range cfg.Loops {
		q := newPoller(p, p.name+"/"+strconv.Itoa(i))
		p.pollers = append(p.pollers, q)
		cfg.Loops[i] = eventloop.Config{Name: q.name, Poller: q, StallAfter: -1, OnPanic: p.panicked}
	}
	rt, err := rdma.Open(p.sys, cfg)
	if err == nil {
		p.rts = append(p.rts, rt)
	}
	return rt, err
}

func (p *Process) device() cmid.Driver { return p.m.host.Driver() }

// open reports whether the process has the descriptor open.
func (p *Process) open(int) bool { return false }

// events is what a descriptor is ready for.
func (p *Process) events(int) eventloop.Events { return 0 }

// fault decides whether a system call fails.
func (p *Process) fault(string) unix.Errno { return 0 }

// Freeze stops the process, as SIGSTOP does. Its kernel goes on.
func (p *Process) Freeze() { p.frozen = true }

// Thaw ends Freeze.
func (p *Process) Thaw() { p.frozen = false }

// runs reports whether the process does anything.
func (p *Process) runs() bool { return !p.frozen && !p.dead }

func (p *Process) panicked(x eventloop.Panic) {
	p.w.Fail("%s: %v has panicked: %v\n%s", p.name, x.Holder, x.Value, x.Stack)
}
