package world

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/internal/sched"
	"github.com/rdmactor/rdmactor/internal/sim/network"
	"github.com/rdmactor/rdmactor/internal/sim/onpath"
	"github.com/rdmactor/rdmactor/states"
)

// Kind is what the machines' devices are.
type Kind uint8

// The kinds of devices. All machines of a World have the same.
const (
	Embedded     Kind = iota // the embedded device, over a simulated TCP
	Twin                     // the twin, as it plays the embedded device
	TwinSoftRoCE             // the twin, as rxe behaves
	TwinSIW                  // the twin, as siw behaves
)

var kindNames = [...]string{"embedded", "twin", "twin as rxe", "twin as siw"}

// String names the kind.
func (k Kind) String() string { return kindNames[k] }

// Config is how a World is made.
type Config struct {
	// Seed decides everything.
	Seed uint64
	Kind Kind
	// Print gets each line of the trace. nil: nobody.
	Print func(line string)
	// Log may put a handler of its own before what a process logs to. nil: it does not.
	Log func(slog.Handler) slog.Handler
}

// Result is what became of a World.
type Result struct {
	Seed    uint64
	Hash    uint64 // of the trace
	Steps   int
	Elapsed time.Duration // of virtual time
	Failure string        // empty: none
}

// maxSteps is how much may happen before a World is given up as one that never rests.
const maxSteps = 200_000

// World is what a script of Run has.
type World struct {
	cfg      Config
	guard    *guard
	start    time.Time
	elapsed  time.Duration // in the end
	steps    int
	failure  string
	order    *rand.Rand // who is next
	trace    *trace
	machines []*Machine
	procs    []*Process
	planned  []planned
	plans    int
	fabric   *cmidtest.Fabric // of twins
	net      *network.Network // of embedded devices
	attacker *onpath.Attacker // between them; nil: nobody
	errnos   *rand.Rand       // which system calls fail
	scarce   float64          // how many of them do

	suspended time.Duration // all in all

	moved chan struct{} // something may have become possible

	mu     sync.Mutex
	over   bool
	tasks  map[uint64]*task   // by goroutine
	parked []*task            // by process and number
	loops  map[uint64]*poller // by goroutine; of twins
}

// planned is something that the script wants to happen at a time.
type planned struct {
	at   time.Time
	n    int
	name string
	fn   func()
}

// Run plays a World: it calls script, and looks for what is left when script has returned. The
// World is used up then. If nothing happens any more for a minute of real time, Run ends the
// program with a panic that names the seed. Run may be called in a test, not in a testing/synctest
// bubble.
func Run(t *testing.T, cfg Config, script func(w *World)) (result Result) {
	t.Helper()
	var w *World
	g := newGuard(t, cfg.Seed)
	defer g.end()
	defer func() {
		// After a failure goroutines are left, which synctest reports by a panic.
		if r := recover(); r != nil && (w == nil || w.failure == "") {
			panic(r)
		}
		result = w.result()
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(cfg)
		w.guard = g
		defer w.close()
		w.apart(func() {
			script(w)
			w.end()
		})
	})
	return
}

func newWorld(cfg Config) *World {
	w := &World{
		cfg: cfg, start: time.Now(), trace: newTrace(cfg.Print),
		moved: make(chan struct{}, 1), tasks: make(map[uint64]*task),
	}
	w.order = w.Rand("order")
	if cfg.Kind != Embedded {
		w.loops = make(map[uint64]*poller)
		f := cmidtest.Config{Seed: cfg.Seed, Scheduler: &sched.Scheduler{Wait: w.stand}}
		f.Reserved = cfg.Kind != Twin // the kernel's devices have their receives from the beginning
		if cfg.Kind != TwinSoftRoCE {
			f.Flavor, f.Embedded = states.IWARP, cfg.Kind == Twin
		}
		w.fabric = cmidtest.NewFabric(f)
		return w
	}
	w.errnos = w.Rand("errnos")
	w.net = network.New(network.Config{
		Now: time.Now, Rand: w.Rand("network"),
		Short: 0.1, MinBuffer: 4 << 10, MaxBuffer: 256 << 10,
		Fail:     func(_ *network.Machine, call string) unix.Errno { return w.fault(call) },
		Accepted: w.accepted,
	})
	return w
}

func (w *World) result() Result {
	return Result{
		Seed: w.cfg.Seed, Hash: w.trace.hash.Sum64(), Steps: w.steps,
		Elapsed: w.elapsed, Failure: w.failure,
	}
}

// Rand gives the random numbers of one concern. Two concerns do not disturb each other: when one
// takes more numbers, the other gets the same as before.
func (w *World) Rand(concern string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(concern)) // never fails
	return rand.New(rand.NewPCG(w.cfg.Seed, h.Sum64()))
}

// Kind is Config.Kind.
func (w *World) Kind() Kind { return w.cfg.Kind }

// Now is the virtual time since Run.
func (w *World) Now() time.Duration { return time.Since(w.start) }

// Trace adds a line to the trace.
func (w *World) Trace(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.line(w.Now(), format, args...)
}

// note adds a line that does not count: its text may differ from run to run.
func (w *World) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.note(w.Now(), text)
}

// Fail ends the World with a failure. The first one counts. Everything goes on until the step that
// has failed is over.
func (w *World) Fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
		w.guard.failure.Store(&w.failure)
		w.trace.line(w.Now(), "FAILED: %s", w.failure)
	}
}

// Failed reports whether there was a Fail.
func (w *World) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != ""
}

// After has fn called, by the script's goroutine, when d has passed. A fault is planned so.
func (w *World) After(d time.Duration, name string, fn func()) {
	w.plans++
	w.planned = append(w.planned, planned{time.Now().Add(d), w.plans, name, fn})
}

// Suspend lets d pass in which no loop and no goroutine gets a turn and nothing arrives, as on
// computers that sleep.
func (w *World) Suspend(d time.Duration) {
	w.suspended += d
	time.Sleep(d)
}

// Suspended is how much time has passed in which computers were suspended.
func (w *World) Suspended() time.Duration { return w.suspended }

// awake is how much time has passed in which computers were not suspended.
func (w *World) awake() time.Duration { return w.Now() - w.suspended }

// kick has the script's goroutine look again.
func (w *World) kick() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}
