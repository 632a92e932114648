package workqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/examples/workqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNoJobIsLost plays a coordinator and three workers on simulated machines. Whatever happens to
// the workers and to the network, each job is done. The coordinator is never killed: it keeps its
// jobs in memory only.
//
//	go test ./examples/workqueue -actortest.seeds=10000
//	go test ./examples/workqueue -actortest.seed=17 -v     # the trace of one
func TestNoJobIsLost(t *testing.T) {
	const jobs, addr = 20, "10.0.0.1:7471"
	actortest.Simulate(t, actortest.Simulation{Faults: actortest.AllFaults}, func(s *actortest.Sim) {
		finished := make(map[uint64]int)
		s.Machine("coordinator", "10.0.0.1", func(p *actortest.Process) {
			queue := &workqueue.Coordinator{Finished: func(job uint64) { finished[job]++ }}
			for job := range uint64(jobs) {
				queue.Waiting = append(queue.Waiting, job)
			}
			serve(s, p, addr, queue)
		}).Spare(actortest.Kill | actortest.PowerOff | actortest.Device)
		for i := range 3 {
			s.Machine(fmt.Sprint("worker", i+1), fmt.Sprint("10.0.0.", i+2), func(p *actortest.Process) {
				rt, err := p.Open()
				if err != nil {
					s.Fail("open: %v", err)
					return
				}
				work := func(uint64) time.Duration { return time.Duration(p.Rand().Int64N(int64(5 * time.Second))) }
				p.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
					return &workqueue.Worker{Runtime: rt, Addr: addr, Work: work}
				}, rt.OnLoop()))
			})
		}
		s.Invariant("jobs are those that were given", func() error {
			for job := range finished {
				if job >= jobs {
					return fmt.Errorf("job %d was done", job)
				}
			}
			return nil
		})
		s.Done(func() bool { return len(finished) == jobs })
	})
}

// serve listens until the simulation ends.
func serve(s *actortest.Sim, p *actortest.Process, addr string, queue actor.Actor) {
	rt, err := p.Open()
	if err != nil {
		s.Fail("open: %v", err)
		return
	}
	owner := p.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return queue }, rt.OnLoop()))
	if err := rt.ListenAndServe(p.Context(), addr, owner); err != nil {
		s.Fail("serve: %v", err)
	}
}
