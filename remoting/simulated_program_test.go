package remoting_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/remoting"
)

// This is how a program of several machines is tested: an account on one node, and a customer on
// another one, who pays in 20 times. Machines are killed, stand still and are cut off, all in
// virtual time, and the invariants are checked after every event.
func TestSimulatedProgram(t *testing.T) {
	const bank, customer, payments = "10.0.0.1:7471", "10.0.0.2:7471", 20
	faults := actortest.Kill | actortest.Freeze | actortest.Cut | actortest.Delay | actortest.Reset
	actortest.Simulate(t, actortest.Simulation{Seeds: 50, Faults: faults}, func(s *actortest.Sim) {
		balance := 0 // on the bank's disk, which outlives its processes
		paid, unknown := 0, 0
		s.Machine("bank", "10.0.0.1", func(p *actortest.Process) {
			rt := startSimulated(s, p, remoting.Config{Name: bank, Expose: remoting.Expose{Reach: []string{"account"}}})
			_, _ = p.System().Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
				if ctx.Sender() != nil {
					balance++
					p.Sleep(300 * time.Millisecond) // its disk is slow
					ctx.Respond(text("thank you"))
				}
			}, rt.OffLoop()), "account")
		})
		s.Machine("customer", "10.0.0.2", func(p *actortest.Process) {
			startSimulated(s, p, remoting.Config{Name: customer})
			for paid+unknown < payments {
				p.Sleep(time.Second)
				f := p.System().Root.RequestFuture(actor.NewPID(bank, "account"), text("1"), 5*time.Minute)
				_, err := remoting.Result(f)
				p.Sleep(0) // a future knows nothing of the simulation: wait for the turn
				var maybe *remoting.Unknown
				switch {
				case err == nil:
					paid++
				case errors.As(err, &maybe): // perhaps carried out: not again
					unknown++
				case errors.Is(err, actor.ErrDeadLetter): // certainly not: again
					p.Sleep(100 * time.Millisecond)
				default:
					s.Fail("%v", err)
				}
			}
		}).Spare(actortest.Kill)
		s.Invariant("nothing is paid twice, and nothing is lost", func() error {
			if balance < paid || balance > paid+unknown+1 { // one may be on its way
				return fmt.Errorf("the balance is %d, %d are paid, and of %d nobody knows", balance, paid, unknown)
			}
			return nil
		})
		s.Done(func() bool { return paid+unknown == payments })
	})
}

// startSimulated starts a node, and tries again as long as a process that was killed a moment ago
// has the address.
func startSimulated(s *actortest.Sim, p *actortest.Process, cfg remoting.Config) *rdma.Runtime {
	rt, err := p.Open()
	if err != nil {
		s.Fail("%v", err)
	}
	for {
		if _, err = remoting.Start(rt, cfg); err == nil {
			return rt
		}
		p.Sleep(100 * time.Millisecond)
	}
}
