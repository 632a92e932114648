package actortest

import (
	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// Config is how a World is made.
type Config struct {
	// InfiniBand makes the device play InfiniBand as RoCE does: padded private data, disconnects
	// that are answered, timewait. Otherwise it plays iWARP, as the embedded device of package
	// iwarp does. Limitations in the package comment list the differences.
	InfiniBand bool
	// Seed decides random choices: port numbers, and what Reorder does. Several loops
	// (Runtime.Loops) run at the same time, so that no seed repeats a run.
	Seed uint64
	// Runtime is how every runtime works: its Timeouts, Limits, Keepalive, Observer, Logger, and
	// how many Loops it has. The device and how the loops are made are the World's.
	Runtime rdma.Config
	// OnPanic is called for whatever panics: actors, what loops call, rpc handlers. Then that does
	// not fail the test, and ExpectPanic has no effect. It is called where it happens, on any
	// goroutine. nil: the test fails.
	OnPanic func(eventloop.Panic)
	// OnStall is called when something keeps a loop busy for a second, as eventloop.Config.OnStall
	// is. Then that does not fail the test. nil: it does.
	OnStall func(eventloop.Stall)
}

// fabricConfig returns the configuration of the devices of the World.
func (c *Config) fabricConfig() cmidtest.Config {
	f := cmidtest.Config{Seed: c.Seed}
	if !c.InfiniBand {
		f.Flavor, f.Embedded = states.IWARP, true
	}
	return f
}
