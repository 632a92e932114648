package world

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

// Kind is the kind of the machines' devices.
type Kind uint8

// The kinds of devices. All machines of a World have the same.
const (
	Embedded     Kind = iota // the embedded device, over a simulated TCP
	Twin                     // the twin as the embedded device
	TwinSoftRoCE             // the twin as rxe
	TwinSIW                  // the twin as siw
)

var kindNames = [...]string{"embedded", "twin", "twin as rxe", "twin as siw"}

// String names the kind.
func (k Kind) String() string { return kindNames[k] }

// Config configures a World.
type Config struct {
	// Seed decides everything.
	Seed uint64
	Kind Kind
	// Print receives each line of the trace. nil: not printed.
	Print func(line string)
	// Log may wrap the handler of a process's log. nil: no wrapper.
	Log func(slog.Handler) slog.Handler
}

// Result is the outcome of a World.
type Result struct {
	Seed    uint64
	Hash    uint64 // of the trace
	Steps   int
	Elapsed time.Duration // of virtual time
	Failure string        // empty: none
}

// maxSteps is the number of steps after which a World is given up as one that never rests.
const maxSteps = 200_000

// World is the simulated world of a script.
type World struct {
	cfg      Config
	guard    *guard
	start    time.Time
	elapsed  time.Duration // at the end
	steps    int
	failure  string
	order    *rand.Rand // chooses the next step
	trace    *trace
	machines []*Machine
	procs    []*Process
	planned  []planned
	fabric   *cmidtest.Fabric // for twins
	net      *network.Network // for embedded devices
	attacker *onpath.Attacker // between them; nil: none
	errnos   *rand.Rand       // chooses which system calls fail
	scarce   float64          // the share that fails
	handles  atomic.Uint64    // the last identifier's

	suspended time.Duration // in total

	moved chan struct{} // new steps may be possible

	mu     sync.Mutex
	over   bool
	tasks  map[uint64]*task   // keyed by goroutine
	parked []*task            // sorted by process and number
	loops  map[uint64]*poller // keyed by goroutine; for twins
}

// planned is an action that the script has scheduled.
type planned struct {
	at   time.Time
	name string
	fn   func()
}

// Run plays a World: it calls script, and checks for leftovers after script has returned. The World
// must not be used after that. If no step happens for a minute of real time, Run ends the program
// with a panic that names the seed. Run may be called in a test, not in a testing/synctest bubble.
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
		result = w.newResult()
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(cfg)
		w.guard = g
		defer w.close()
		w.runApart(func() {
			script(w)
			w.shutDownAll()
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
		f := cmidtest.Config{Seed: cfg.Seed, Scheduler: &sched.Scheduler{Wait: w.parkLoop}}
		f.Reserved = cfg.Kind != Twin // the kernel's devices have their receives posted from the
		// start
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
		Fail:     func(_ *network.Machine, call string) unix.Errno { return w.drawErrno(call) },
		Accepted: w.handleAccepted,
	})
	return w
}

func (w *World) newResult() Result {
	return Result{
		Seed: w.cfg.Seed, Hash: w.trace.hash.Sum64(), Steps: w.steps,
		Elapsed: w.elapsed, Failure: w.failure,
	}
}

// Rand returns a source of random numbers for one concern. Concerns are independent: when one takes
// more numbers, the others get the same as before.
func (w *World) Rand(concern string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(concern)) // never fails
	return rand.New(rand.NewPCG(w.cfg.Seed, h.Sum64()))
}

// Kind returns Config.Kind.
func (w *World) Kind() Kind { return w.cfg.Kind }

// Now returns the virtual time since Run.
func (w *World) Now() time.Duration { return time.Since(w.start) }

// Trace adds a line to the trace.
func (w *World) Trace(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.addLine(w.Now(), format, args...)
}

// addNote adds a line that is not hashed: its text may differ from run to run.
func (w *World) addNote(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.addNote(w.Now(), text)
}

// Fail ends the World with a failure. Only the first one counts. Everything continues until the end
// of the failed step.
func (w *World) Fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
		w.guard.failure.Store(&w.failure)
		w.trace.addLine(w.Now(), "FAILED: %s", w.failure)
	}
}

// Failed reports whether Fail was called.
func (w *World) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != ""
}

// After schedules a call of fn by the script's goroutine after d. Faults are scheduled this way.
func (w *World) After(d time.Duration, name string, fn func()) {
	w.planned = append(w.planned, planned{time.Now().Add(d), name, fn})
}

// Suspend lets d pass in which no loop and no goroutine gets a turn and nothing arrives, as on
// sleeping computers.
func (w *World) Suspend(d time.Duration) {
	w.suspended += d
	time.Sleep(d)
}

// Suspended returns how long the computers were suspended.
func (w *World) Suspended() time.Duration { return w.suspended }

// awakeTime returns how long the computers were not suspended.
func (w *World) awakeTime() time.Duration { return w.Now() - w.suspended }

// wakeScript makes the script's goroutine compute the steps again.
func (w *World) wakeScript() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}
