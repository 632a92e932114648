package remoting_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/remoting"
)

// simulated starts a simulated machine's node, whose actor "echo" answers. nil: the time is over.
func simulated(s *actortest.Sim, p *actortest.Process, addr string) *remoting.Node {
	rt, err := p.Open()
	var n *remoting.Node
	if err == nil {
		n, err = remoting.Start(rt, remoting.Config{Name: addr, Expose: everything})
	}
	if err == nil {
		_, err = p.System().Root.SpawnNamed(actor.PropsFromFunc(echo, rt.OnLoop()), "echo")
	}
	if err != nil && p.Context().Err() == nil {
		s.Fail("%s: %v", p.Name(), err)
	}
	return n
}

// simulatedAsk asks the actor "echo" of a node.
func simulatedAsk(p *actortest.Process, addr string) error {
	f := p.System().Root.RequestFuture(actor.NewPID(addr, "echo"), text("?"), 3*time.Second)
	_, err := remoting.Result(f)
	p.Sleep(0) // a future does not know the simulation, and so does not wait for its turn
	return err
}

// Nodes reach each other again when their devices, which were removed, are back: they listen again.
func TestListensAgain(t *testing.T) {
	actortest.Simulate(t, actortest.Simulation{Seeds: 20, Faults: actortest.Device}, func(s *actortest.Sim) {
		addrs := []string{"10.0.0.1:7471", "10.0.0.2:7471"}
		var answers, before [2]int
		over := false // no further device is removed
		for i, addr := range addrs {
			s.Machine([]string{"m1", "m2"}[i], []string{"10.0.0.1", "10.0.0.2"}[i], func(p *actortest.Process) {
				if simulated(s, p, addr) == nil {
					return
				}
				for {
					if simulatedAsk(p, addrs[1-i]) == nil {
						answers[i]++
					}
					p.Sleep(time.Second)
				}
			})
		}
		s.Done(func() bool {
			if !over {
				over, before = true, answers
			}
			return answers[0] > before[0] && answers[1] > before[1]
		})
	})
}
