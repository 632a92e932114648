package world

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sim/network"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/iwarp"
)

// Process is a program on a machine.
type Process struct {
	w       *World
	m       *Machine
	net     *network.Process // on the embedded device
	name    string
	number  int
	sys     *actor.ActorSystem
	rts     []*rdma.Runtime
	pollers []*poller
	source  rand.Source
	opening int // calls of Open that have not returned
	started int // number of tasks
	ctx     context.Context
	cancel  context.CancelFunc
	frozen  bool
	since   time.Duration // when it was frozen
	stood   time.Duration // total of the earlier freezes
	dead    bool
}

// Start starts a program: main runs on a goroutine of the process. The machine must be on.
func (m *Machine) Start(main func(p *Process)) *Process {
	w := m.w
	p := &Process{w: w, m: m, number: len(w.procs) + 1}
	p.name = fmt.Sprintf("%s.%d", m.name, p.number)
	p.source = rand.NewPCG(w.cfg.Seed, uint64(p.number))
	w.procs = append(w.procs, p)
	m.procs = append(m.procs, p)
	if m.net != nil {
		p.net = m.net.Process(network.Limits{})
	} else {
		m.AddDevice()
	}
	p.sys = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return p.newLogger() }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.Go(func() { main(p) })
	return p
}

// Context ends when the World does: then programs shut down, as at SIGTERM. So do killed ones,
// whose goroutines continue until then, with what is left of their process.
func (p *Process) Context() context.Context { return p.ctx }

// Name returns the process's name: its machine's, and a number.
func (p *Process) Name() string { return p.name }

// Machine returns the machine on which the process runs.
func (p *Process) Machine() *Machine { return p.m }

// World returns the world of the process.
func (p *Process) World() *World { return p.w }

// System returns the process's actor system.
func (p *Process) System() *actor.ActorSystem { return p.sys }

// Rand returns a source of the process's random numbers.
func (p *Process) Rand() *rand.Rand { return rand.New(p.source) }

// Open calls rdma.Open with the process's device, loops and logger in cfg: cfg.Loops is the number
// of loops. The World shuts the runtime down at the end. After the end of Context Open fails.
func (p *Process) Open(cfg rdma.Config) (*rdma.Runtime, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	p.opening++
	defer func() { p.opening-- }()
	cfg.Device, cfg.Scheduler = p.newDevice(), p.newScheduler()
	cfg.Loops = make([]eventloop.Config, max(len(cfg.Loops), 1))
	for i := range cfg.Loops {
		q := newPoller(p)
		p.pollers = append(p.pollers, q)
		cfg.Loops[i] = eventloop.Config{Name: q.name, Poller: q, StallAfter: -1, OnPanic: p.failWithPanic}
	}
	rt, err := rdma.Open(p.sys, cfg)
	if err == nil {
		p.rts = append(p.rts, rt)
	}
	return rt, err
}

func (p *Process) newDevice() cmid.Driver {
	if p.net == nil {
		return p.m.host.Driver()
	}
	return iwarp.Config{}.NewOn(func() sockets.Stack { return p.net.Stack() })
}

// fileID identifies the file that the process has open under a descriptor. 0: none. Twins have
// none.
func (p *Process) fileID(fd int) uint64 {
	if p.net == nil {
		return 0
	}
	return p.net.File(fd)
}

// readyEvents returns a descriptor's ready events.
func (p *Process) readyEvents(fd int) eventloop.Events {
	if p.net == nil {
		return 0
	}
	return p.net.Ready(fd)
}

// Freeze stops the process, as SIGSTOP does. Its kernel keeps running.
func (p *Process) Freeze() {
	if !p.frozen {
		p.frozen, p.since = true, p.w.awakeTime()
	}
}

// Thaw ends Freeze.
func (p *Process) Thaw() { p.stood, p.frozen = p.frozenTime(), false }

// frozenTime returns how long the process has been frozen in all.
func (p *Process) frozenTime() time.Duration {
	if p.frozen {
		return p.stood + p.w.awakeTime() - p.since
	}
	return p.stood
}

// Awake returns how long the process could run: the World's time without that in which it was
// frozen, or its computer suspended.
func (p *Process) Awake() time.Duration { return p.w.awakeTime() - p.frozenTime() }

// Dead reports whether the process was killed.
func (p *Process) Dead() bool { return p.dead }

// Kill ends the process, as SIGKILL does: it stops, and its kernel closes its descriptors. On twins
// that ends all processes of the machine.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	if p.net == nil {
		for _, other := range p.m.procs {
			other.dead = true
		}
		p.m.crashPrograms()
		return
	}
	p.dead = true
	p.net.Kill()
	p.m.procs = slices.DeleteFunc(p.m.procs, func(other *Process) bool { return other == p })
}

// mayRun reports whether the process may run.
func (p *Process) mayRun() bool { return !p.frozen && !p.dead }

// mayTurn reports whether the process's loops may have turns. Those of a killed twin have one more,
// in which the twin stops them.
func (p *Process) mayTurn() bool { return p.mayRun() || p.dead && p.net == nil }

func (p *Process) failWithPanic(x eventloop.Panic) {
	p.w.Fail("%s: %v has panicked: %v\n%s", p.name, x.Holder, x.Value, x.Stack)
}
