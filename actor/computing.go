package actor

import (
	"net/netip"
	"runtime"
	"sync"

	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// computing bounds how many steps of handshakes are computed at a time. Without that a thousand
// strangers would have a thousand goroutines compete with the loops for processors. The others
// wait, and addresses take turns. How many wait is bounded by Limits.Handshakes, and by how many
// connections the program itself dials.
//
// A step in which the user's code runs gives its place back meanwhile: that code may block.
type computing struct {
	sched *sched.Scheduler
	most  int

	mu    sync.Mutex
	busy  int
	waits fairshare.Turns[netip.Addr, func()]
}

// places is how many processors handshakes may have: half of them. In a simulation it must not
// depend on the machine.
func (c *computing) places(s *sched.Scheduler) {
	c.sched, c.most = s, 2
	if s == nil {
		c.most = max(1, runtime.GOMAXPROCS(0)/2)
	}
}

// do has step computed on a goroutine of its own. It counts for the network address a; the zero
// address is this side's own.
func (c *computing) do(a netip.Addr, step func()) {
	c.enter(a, func() {
		c.sched.Go(func() {
			defer c.leave()
			defer runtime.Gosched() // the next goroutine would have the rest of this one's time
			step()
		})
	})
}

// enter calls granted when there is a place. It must not block.
func (c *computing) enter(a netip.Addr, granted func()) {
	c.mu.Lock()
	free := c.busy < c.most
	if free {
		c.busy++
	} else {
		c.waits.Put(a, granted)
	}
	c.mu.Unlock()
	if free {
		granted()
	}
}

// leave gives a place to who waits for one.
func (c *computing) leave() {
	c.mu.Lock()
	granted, ok := c.waits.Take()
	if !ok {
		c.busy--
	}
	c.mu.Unlock()
	if ok {
		granted()
	}
}

// place is that of a step. Its methods are secure.Place's.
type place struct {
	of *computing
	a  netip.Addr
}

// Leave is called before the user's code runs.
func (p place) Leave() { p.of.leave() }

// Return is called when it has returned. It waits for a place.
func (p place) Return() {
	granted := make(chan struct{})
	p.of.enter(p.a, func() { close(granted) })
	<-granted
	p.of.sched.Resume()
}
