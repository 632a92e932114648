// Package workload has the random programs that simulated worlds run, and what joins them to
// package swarm: a [Kind] draws operations, and makes a [Workload] that performs them.
//
// Everything that is random is drawn before the world begins, as a list of operations. Whoever
// shrinks a failure leaves some of them out: each operation therefore stands for itself. It names
// the connection, call or stream that it is about by a number of the workload's, never by its place
// in the list. If what it needs was left out, it does nothing.
//
// # Ownership
//
// Done, Check and Killed are called by the World's own goroutine, between two steps, when nothing
// else runs. A Workload needs no locks against them.
package workload

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// errPlanned is what actors panic with that a plan has panic.
var errPlanned = errors.New("panics, as the plan has it")

// Planned reports whether a plan has an actor fail with that value: by errPlanned, or by
// runtime.Goexit, which does not happen on a loop.
func Planned(value any) bool {
	err, ok := value.(error)
	return ok && (errors.Is(err, errPlanned) || strings.Contains(err.Error(), "runtime.Goexit"))
}

// Op is one operation of a workload. String names it for people, in one line, such as "at 1.2s
// client 1 sends 300 bytes on connection 3". It is the same in each run of a seed.
type Op interface{ String() string }

// Kind is a kind of workload.
type Kind struct {
	// Name is a word.
	Name string
	// Machines is how many machines it needs. A world may have more.
	Machines int
	// Verbs names the kinds of its operations. A plan has some of them only.
	Verbs []string
	// Draw draws about n operations.
	Draw func(d Draw, n int) []Op
	// New makes the workload. Operations may be missing from what Draw has drawn.
	New func(e *Env, ops []Op) Workload
}

// Draw is what Kind.Draw may use.
type Draw struct {
	*rand.Rand
	// Has says which of Kind.Verbs the plan has. It has at least one.
	Has map[string]bool
	// Machines is how many machines the world has, and Device what device each of them has.
	Machines int
	Device   world.Kind
	// Faults reports whether the world has any.
	Faults bool
	// Time is how long operations may begin: they are drawn over this time.
	Time time.Duration
}

// Workload is a program, or several.
type Workload interface {
	// Start starts its processes, by Env.Start. It is called once, before anything happens.
	Start()
	// Done reports whether everything that was asked for was answered. When no faults happen any
	// more it must be true within Env.Patience.
	Done() bool
	// Check is the oracles' last word, when Done is true, and before the processes shut down. It
	// calls World.Fail.
	Check()
}

// Killer is what a Workload may have too, to know of crashes.
type Killer interface {
	// Killed is called when a process that it has started was killed, before it is started anew.
	Killed(p *world.Process)
}
