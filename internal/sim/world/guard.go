package world

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"
)

// silence limits the real time without a step.
const silence = time.Minute

// guard watches a World from outside. If a goroutine of the World never rests, virtual time stands
// still, and nothing inside can report that.
type guard struct {
	seed    uint64
	beats   atomic.Int64 // how often the World has computed the possible steps
	failure atomic.Pointer[string]
	over    chan struct{}
}

// newGuard starts a guard. The caller must call end.
func newGuard(t *testing.T, seed uint64) *guard {
	t.Helper()
	g := &guard{seed: seed, over: make(chan struct{})}
	deadline, _ := t.Deadline()
	go g.watchSteps(deadline)
	return g
}

func (g *guard) end() { close(g.over) }

// watchSteps ends the program when no steps happen, or shortly before the test's deadline.
func (g *guard) watchSteps(deadline time.Time) {
	tick := time.NewTicker(silence / 120)
	defer tick.Stop()
	seen, since := int64(-1), time.Now()
	for {
		select {
		case <-g.over:
			return
		case <-tick.C:
		}
		now := time.Now()
		if n := g.beats.Load(); n != seen {
			seen, since = n, now
		}
		switch {
		case now.Sub(since) >= silence:
			g.endProgram(fmt.Sprintf("nothing has happened for %v of real time: a goroutine runs without end, or waits for"+
				" something from outside of the simulation (a channel, a mutex, a socket)", silence))
		case !deadline.IsZero() && deadline.Sub(now) < time.Second:
			g.endProgram(fmt.Sprintf("the time of -timeout is over; the last step was %v ago", now.Sub(since).Round(time.Millisecond)))
		}
	}
}

// endProgram ends the program, and prints all goroutines.
func (g *guard) endProgram(why string) {
	debug.SetTraceback("all")
	if f := g.failure.Load(); f != nil {
		why += "\nbefore that it has failed: " + *f
	}
	panic(fmt.Sprintf("simulation: seed %d: %s", g.seed, why))
}

// runApart calls fn on a new goroutine. A panic there, or t.FailNow, fails the World, and does not
// end the test program.
func (w *World) runApart(fn func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		finished := false
		defer func() {
			if r := recover(); r != nil {
				w.Fail("the script has panicked: %v\n%s", r, debug.Stack())
			} else if !finished {
				w.Fail("the script has ended its goroutine, as t.FailNow does")
			}
		}()
		fn()
		finished = true
	}()
	<-ended
}
