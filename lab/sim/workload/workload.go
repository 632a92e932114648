// Package workload contains the random programs of simulated worlds, and their interface to package
// swarm: a [Kind] draws operations, and creates a [Workload] that performs them.
//
// All random choices are drawn before the world begins, as a list of operations. Shrinking a
// failure leaves some of them out, so each operation is self-contained: it names its connection,
// call or stream by a number of the workload, never by a position in the list. An operation whose
// prerequisites were left out does nothing.
//
// # Ownership
//
// Done, Check and Killed are called by the World's goroutine, between two steps, when nothing else
// runs. A Workload needs no locks against them.
package workload

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// errPlanned is the value of planned panics of actors.
var errPlanned = errors.New("panics, as the plan has it")

// Planned reports whether the failure of an actor with that value is planned: by errPlanned, or by
// runtime.Goexit, which does not happen on a loop.
func Planned(value any) bool {
	err, ok := value.(error)
	return ok && (errors.Is(err, errPlanned) || strings.Contains(err.Error(), "runtime.Goexit"))
}

// Op is one operation of a workload. String describes it for people, in one line, such as "at 1.2s
// client 1 sends 300 bytes on connection 3". It is the same in each run of a seed.
type Op interface{ String() string }

// start is when an operation begins, and the acting machine.
type start struct {
	at      time.Duration
	machine int
}

// startOf returns the start.
func (s *start) startOf() *start { return s }

// startOn returns when a machine performs an operation. not own: another machine does.
func startOn(machine int, op Op) (at time.Duration, own bool) {
	s := op.(interface{ startOf() *start }).startOf()
	return s.at, s.machine == machine
}

// Kind is a kind of workload.
type Kind struct {
	// Name is a word.
	Name string
	// Verbs names the kinds of its operations. A plan uses only some of them.
	Verbs []string
	// Draw draws about n operations.
	Draw func(d Draw, n int) []Op
	// New creates the workload. Some of the drawn operations may be missing.
	New func(e *Env, ops []Op) Workload
}

// Draw is the input of Kind.Draw.
type Draw struct {
	*rand.Rand
	// Has contains those of Kind.Verbs that the plan uses, of which there is at least one.
	Has map[string]bool
	// Machines is how many machines the world has, at least 2, and Device the device of each.
	Machines int
	Device   world.Kind
	// Time is the period over which the starts of operations are drawn.
	Time time.Duration
}

// Workload is a program, or several.
type Workload interface {
	// Start starts its processes, by Env.Start. It is called once, before anything happens.
	Start()
	// Done reports whether all requests were answered. After the last fault it must become true
	// within Env.Patience.
	Done() bool
	// Check completes the oracles, when Done is true, and before the processes shut down. It calls
	// World.Fail.
	Check()
}

// Killer is an optional interface of a Workload that is notified of crashes.
type Killer interface {
	// Killed is called when one of its processes was killed, before the program is restarted.
	Killed(p *world.Process)
}
