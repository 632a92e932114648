package actortest_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/actortest"
)

// oneMachine returns a script with one machine.
func oneMachine(main func(t *testing.T, p *actortest.Process)) func(t *testing.T, s *actortest.Sim) {
	return func(t *testing.T, s *actortest.Sim) {
		s.Machine("one", "10.0.0.1", func(p *actortest.Process) { main(t, p) })
	}
}

// careless are mistakes in a simulation's program. Each report describes the mistake, and names
// the seed.
var careless = map[string]mistake{
	"main panics": {
		script: oneMachine(func(*testing.T, *actortest.Process) { panic("for a reason") }),
		want:   []string{"seed 1 fails: one.1: goroutine 1 has panicked: for a reason", "careless_test.go", "-actortest.seed=1"},
	},
	"a panic after a while": { // without Done, too, time passes
		script: oneMachine(func(_ *testing.T, p *actortest.Process) {
			p.Sleep(20 * time.Second)
			panic("for a reason")
		}),
		want: []string{"seed 1 fails: one.1: goroutine 1 has panicked: for a reason"},
	},
	"main fails the test": {
		script: oneMachine(func(t *testing.T, _ *actortest.Process) { t.Fatal("for a reason") }),
		want:   []string{"for a reason", "seed 1 fails: the program has failed or skipped the test itself", "-actortest.seed=1"},
	},
	"an actor fails the test": {
		script: oneMachine(func(t *testing.T, p *actortest.Process) {
			rt, err := p.Open()
			if err != nil {
				t.Error(err)
				return
			}
			p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					t.Fatal("for a reason")
				}
			}, rt.OnLoop()))
		}),
		want: []string{"for a reason", "seed 1 fails: the program has failed or skipped the test itself"},
	},
	"the script panics": {
		script: func(_ *testing.T, s *actortest.Sim) { s.Done(func() bool { panic("for a reason") }) },
		want:   []string{"seed 1 fails: the script has panicked: for a reason", "careless_test.go"},
	},
	"the script fails the test": {
		script: func(t *testing.T, _ *actortest.Sim) { t.Fatal("for a reason") },
		want:   []string{"for a reason", "seed 1 fails: the program has failed or skipped the test itself"},
	},
	"two machines with one address": {
		script: func(_ *testing.T, s *actortest.Sim) {
			s.Machine("one", "10.0.0.1", func(*actortest.Process) {})
			s.Machine("two", "10.0.0.1", func(*actortest.Process) {})
		},
		want: []string{"seed 1 fails: the script has panicked: ", "10.0.0.1 belongs to one already"},
	},
	"a goroutine that waits for ever": {
		script: oneMachine(func(*testing.T, *actortest.Process) { <-make(chan int) }),
		want:   []string{"seed 1 fails: a goroutine is left:", "careless_test.go"},
	},
	"Sleep on a bare goroutine": {
		script: oneMachine(func(_ *testing.T, p *actortest.Process) { go p.Sleep(time.Second) }),
		want:   []string{"seed 1 fails: one.1: Sleep on a goroutine that Process.Go has not started"},
	},
	"a world in a world": {
		script: func(t *testing.T, _ *actortest.Sim) {
			actortest.Simulate(t, actortest.Simulation{}, func(*actortest.Sim) {})
		},
		want: []string{"Simulate makes a world of its own"},
	},
	"a wait for what is outside": {
		script: oneMachine(func(*testing.T, *actortest.Process) { <-outside }),
		want:   []string{"panic: simulation: seed 1: the time of -timeout is over", "careless_test.go"},
		within: 20 * time.Second,
	},
}

// outside was not made in the simulation: virtual time stands still as long as a goroutine waits
// for it.
var outside = make(chan int)

func TestSimulateCareless(t *testing.T) { reports(t, careless) }

// TestSimulateShutDown lets a program shut its actor system down itself.
func TestSimulateShutDown(t *testing.T) {
	script := oneMachine(func(t *testing.T, p *actortest.Process) {
		rt, err := p.Open()
		if err != nil {
			t.Error(err)
			return
		}
		if err := rt.Shutdown(p.Context()); err != nil {
			t.Error(err)
		}
		p.System().Shutdown()
	})
	actortest.Simulate(t, actortest.Simulation{Seeds: 3}, func(s *actortest.Sim) { script(t, s) })
}
