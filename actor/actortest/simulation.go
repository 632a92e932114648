package actortest

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/faults"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

var (
	seedsFlag = flag.Int("actortest.seeds", 0, "how many seeds Simulate plays, in place of Simulation.Seeds")
	seedFlag  = flag.Uint64("actortest.seed", 0, "the only seed that Simulate plays; its trace is logged")
)

// Faults is a set of the faults that happen in a [Simulation].
type Faults uint

// The faults. Each hits machines, links and moments that the seed decides, and ends after a while.
const (
	// Kill: a process is killed, and main is called again, immediately or later. On a twin of a
	// kernel's device the address of a killed listener may be in use for a moment (EADDRINUSE).
	Kill = Faults(faults.Kill)
	// Freeze: a process stands still, as at SIGSTOP.
	Freeze = Faults(faults.Freeze)
	// PowerOff: a machine stops, without a notification.
	PowerOff = Faults(faults.PowerOff)
	// Cut: a link is cut, both ways or one way.
	Cut = Faults(faults.Cut)
	// Delay: messages take longer, or are lost and sent again.
	Delay = Faults(faults.Delay)
	// Reset: a TCP connection is reset on the path.
	Reset = Faults(faults.Reset)
	// Device: a machine loses its device, or its addresses, for a while.
	Device = Faults(faults.Device)
	// Scarce: system calls fail with ENOMEM, EMFILE and the like.
	Scarce = Faults(faults.Scarce)
	// Reorder: completions and events of a connection overtake each other.
	Reorder = Faults(faults.Reorder)
	// Suspend: time passes without a turn.
	Suspend = Faults(faults.Suspend)
	// AllFaults are all of them.
	AllFaults = Kill | Freeze | PowerOff | Cut | Delay | Reset | Device | Scarce | Reorder | Suspend
)

// Simulation is how [Simulate] plays a program. The zero value plays 200 seeds without faults.
type Simulation struct {
	// Seeds is how many seeds are played: 200. The flag -actortest.seeds has precedence.
	Seeds int
	// Faults may happen. A seed draws some of them, or none.
	Faults Faults
	// Time is how long faults may begin: 30 s, in virtual time. A program without Done ends then,
	// or when the last fault has.
	Time time.Duration
	// Patience is how long the program may take after the last fault, until Done: 10 minutes, in
	// virtual time.
	Patience time.Duration
}

func (c Simulation) withDefaults() Simulation {
	if *seedsFlag > 0 {
		c.Seeds = *seedsFlag
	}
	if c.Seeds <= 0 {
		c.Seeds = 200
	}
	if c.Time <= 0 {
		c.Time = 30 * time.Second
	}
	if c.Patience <= 0 {
		c.Patience = 10 * time.Minute
	}
	return c
}

// Simulate plays a program of several machines once for each seed, and fails t with the first seed
// that fails. script is called for each seed. It declares the machines and their programs, the
// invariants (Sim.Invariant), and when the program has finished (Sim.Done). Then everything
// happens in virtual time, one thing at a time, in an order that the seed decides: the turns of
// loops, goroutines, the arrival of messages, faults. The devices are the embedded one on a
// simulated TCP, or a twin of a kernel's device, as the seed decides.
//
// A failing seed is played again without those of its faults that it does not need. The report
// has the rest, and the command that shows the seed's trace. Each seed is played twice, and the
// two traces must be the same. If they are not, the program depends on more than the seed: on a
// map's order, on a goroutine that Process.Go has not started, on a random number that is not
// Process.Rand's.
//
//	go test -run TestX -timeout 0 -actortest.seeds=10000    # in the test's folder; in place of 200
//	go test -run TestX -v -actortest.seed=17                # the trace of one
//
// Variables of script are for all that happens in its Sim, without locks. They are what outlives a
// process that is killed: its disk, or the counts of the test. The rest of such a process goes on
// when the simulation ends, and only then: its Context has ended, and it should return. Its
// changes of these variables are ignored then, but a Fail still counts.
//
// A PID is valid in its process only. Simulate fails when a process sends to a PID that another has
// spawned, such as one in a variable of script.
//
// Simulate fails if the program is not Done within Patience after the last fault, if an actor, a
// callback of a loop, main, a goroutine of Process.Go or the script panics, and if anything is
// left when all runtimes were shut down: goroutines, identifiers, descriptors, device memory. A
// panic on any other goroutine ends the test program, as does a world in which nothing happens for
// a minute of real time.
func Simulate(t *testing.T, cfg Simulation, script func(s *Sim)) {
	t.Helper()
	if inBubble() {
		t.Fatal("actortest: Simulate makes a world of its own: call it in a test, not in Run, in another Simulate, or in a testing/synctest bubble")
	}
	cfg = cfg.withDefaults()
	first, n := uint64(1), cfg.Seeds
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		if !simulateTwice(t, cfg, seed, script) {
			return
		}
	}
}

// simulateTwice plays one seed, twice.
func simulateTwice(t *testing.T, cfg Simulation, seed uint64, script func(s *Sim)) bool {
	t.Helper()
	p := &player{t: t, cfg: cfg, seed: seed, script: script, without: map[int]bool{}}
	var print func(string)
	if *seedFlag != 0 {
		print = func(line string) { t.Log(line) }
	}
	failed, skipped := t.Failed(), t.Skipped()
	one, all := p.playSeed(print)
	if t.Failed() && !failed || t.Skipped() && !skipped {
		t.Errorf("actortest: seed %d fails: the program has failed or skipped the test itself%s\nthe trace: go test -run '^%s$' -actortest.seed=%d",
			seed, laterFailure(one.Failure), t.Name(), seed)
		return false
	}
	if one.Failure != "" {
		happened := p.shrinkFaults(one.Failure, len(all))
		t.Errorf("actortest: seed %d fails: %s\n%sthe trace: go test -run '^%s$' -actortest.seed=%d", seed, one.Failure, happened, t.Name(), seed)
		return false
	}
	if two, _ := p.playSeed(nil); two.Hash != one.Hash || two.Failure != "" {
		t.Errorf("actortest: two runs of seed %d differ: %s", seed, p.findDifference(two.Failure))
		return false
	}
	return true
}

// laterFailure returns the additional part of a simulation's report.
func laterFailure(failure string) string {
	if failure == "" {
		return ""
	}
	return ", and then: " + failure
}

// inBubble reports whether the calling goroutine is in a testing/synctest bubble.
func inBubble() bool {
	var buf [128]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte("\n"))
	return bytes.Contains(head, []byte("synctest bubble"))
}

// player plays one seed.
type player struct {
	t       *testing.T
	cfg     Simulation
	seed    uint64
	script  func(s *Sim)
	without map[int]bool // faults that are left out
}

// playSeed plays the seed once, and returns the faults that were drawn.
func (p *player) playSeed(print func(line string)) (r world.Result, all []*fault) {
	kinds := []world.Kind{world.Twin, world.TwinSoftRoCE, world.TwinSIW}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, world.Embedded, world.Embedded, world.Embedded)
	}
	draw := rand.New(rand.NewPCG(p.seed, 0))
	s := &Sim{}
	s.panics = &panics{t: p.t, onPanic: s.failOnPanic}
	c := world.Config{Seed: p.seed, Kind: kinds[draw.IntN(len(kinds))], Print: print, Log: s.failureHandler}
	r = world.Run(p.t, c, func(w *world.World) {
		s.w = w
		p.script(s)
		all = drawFaults(draw, p.cfg, s)
		s.runFaults(p, all)
	})
	return r, all
}

// shrinkFaults leaves out the faults that the failure does not need, and lists the others.
func (p *player) shrinkFaults(failure string, n int) string {
	for i := range n {
		p.without[i] = true
		if again, _ := p.playSeed(nil); kindOf(again.Failure) != kindOf(failure) {
			delete(p.without, i)
		}
	}
	_, all := p.playSeed(nil)
	var s strings.Builder
	for i, f := range all {
		if !p.without[i] {
			fmt.Fprintf(&s, "\tat %v %v\n", f.at, f)
		}
	}
	if s.Len() == 0 {
		return "it needs no fault\n"
	}
	return "the faults that it needs:\n" + s.String()
}

// kindOf returns the first line of a failure, without its numbers.
func kindOf(failure string) string {
	line, _, _ := strings.Cut(failure, "\n")
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, line)
}

// findDifference plays the seed twice more, and shows where the traces part.
func (p *player) findDifference(failure string) string {
	if failure != "" {
		return "the second one fails: " + failure
	}
	var lines [2][]string
	for i := range lines {
		p.playSeed(func(line string) {
			if !strings.HasPrefix(line, world.Aside) {
				lines[i] = append(lines[i], line)
			}
		})
	}
	for i, line := range lines[0] {
		if i >= len(lines[1]) || lines[1][i] != line {
			last := min(i+2, len(lines[0]), len(lines[1]))
			from := min(max(0, i-3), last)
			return fmt.Sprintf("line %d\n%s\nand\n%s", i+1, strings.Join(lines[0][from:last], "\n"), strings.Join(lines[1][from:last], "\n"))
		}
	}
	return "not when they were played again"
}
