package actortest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// In virtual time nothing takes long, so a test does not notice that an actor has slept on its
// loop while everybody else there has waited. Time passes during a loop's turn only if something
// in it waits: the loop's watchdog reports the actor, and the loop, when it goes on, for how long.

// poller is a loop's Poller: the loop calls Wait when a turn is over.
type poller struct {
	*eventlooptest.Poller
	t       *testing.T
	onStall func(eventloop.Stall) // nil: the test fails
	stopped *atomic.Bool          // the machine's

	mu    sync.Mutex
	since time.Time         // the turn began
	stuck []eventloop.Stall // in it
}

// recordStall records a stall that the watchdog reports.
func (p *poller) recordStall(s eventloop.Stall) {
	if p.stopped.Load() { // it is the whole program that stands
		return
	}
	if p.onStall != nil {
		p.onStall(s)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = append(p.stuck, s)
}

// Wait implements eventloop.Poller.
func (p *poller) Wait(dst []eventloop.Ready, timeout time.Duration) (n int, err error) {
	p.reportStalls("went on after")
	n, err = p.Poller.Wait(dst, timeout)
	p.mu.Lock()
	p.since = time.Now()
	p.mu.Unlock()
	return n, err
}

// reportStalls fails the test for the stall of the loop in this turn.
func (p *poller) reportStalls(since string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.stuck {
		p.t.Errorf("actortest: %v blocks the loop %s, which %s %v; who may block uses rdma.OffLoop\n%s",
			s.Holder, s.Loop, since, time.Since(p.since), s.Stack)
	}
	p.stuck = nil
}
