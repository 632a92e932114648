package actortest

import (
	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// Option is an option of Run.
type Option func(*config)

type config struct {
	fabric  cmidtest.Config
	runtime []rdma.Option
	onPanic func(eventloop.Panic) // nil: the test fails
	onStall func(eventloop.Stall) // nil: the test fails
}

// IWARP has the device play iWARP, as the embedded device of package iwarp does. This is the
// default. Limitations in the package comment say where the two differ.
func IWARP() Option {
	return func(c *config) { c.fabric.Flavor, c.fabric.Embedded = states.IWARP, true }
}

// InfiniBand has the device play InfiniBand as RoCE does: padded private data, disconnects that
// are answered, timewait.
func InfiniBand() Option { return func(c *config) { c.fabric.Flavor = 0 } }

// Seed decides what chance decides: port numbers, and what Reorder does. It is 0 otherwise.
// Several loops (WithLoops) run at the same time: then no seed repeats a run.
func Seed(n uint64) Option { return func(c *config) { c.fabric.Seed = n } }

// RuntimeOptions are further options of every runtime: WithTimeouts, WithLimits, WithObserver,
// WithLogger, WithLoops. The device and how the loops are made are the World's.
func RuntimeOptions(opts ...rdma.Option) Option {
	return func(c *config) { c.runtime = append(c.runtime, opts...) }
}

// OnPanic has fn told of whatever panics or calls runtime.Goexit: actors, what loops call, rpc
// handlers. Then that does not fail the test, and ExpectPanic means nothing. fn is called where it
// happens, on any goroutine; a Goexit is told by each whom it passes, such as an actor and its
// loop.
func OnPanic(fn func(eventloop.Panic)) Option { return func(c *config) { c.onPanic = fn } }

// OnStall has fn told when something holds a loop for a second, as eventloop.Config.OnStall is.
// Then that does not fail the test.
func OnStall(fn func(eventloop.Stall)) Option { return func(c *config) { c.onStall = fn } }
