package handshakes

import (
	"math"
	"net/netip"
	"runtime"
	"sync"

	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// Computing bounds how many steps of handshakes are computed at a time. Without that a thousand
// strangers would have a thousand goroutines compete with the loops for processors. The others
// wait, and addresses take turns. How many wait is bounded by Limits.Handshakes, and by how many
// connections the program itself dials.
//
// A step in which the user's code runs gives its place back meanwhile: that code may block.
type Computing struct {
	// Most is how many steps are computed at a time.
	Most int

	sched *sched.Scheduler

	mu    sync.Mutex
	steps fairshare.Queue[netip.Addr, func()] // by the address that they count for
}

// Places sets how many processors handshakes may have: half of them. In a simulation it must not
// depend on the machine.
func (c *Computing) Places(s *sched.Scheduler) {
	c.sched, c.Most = s, 2
	if s == nil {
		c.Most = max(1, runtime.GOMAXPROCS(0)/2)
	}
}

// Do has step computed on a goroutine of its own. It counts for the network address a; the zero
// address is this side's own.
func (c *Computing) Do(a netip.Addr, step func()) {
	c.Enter(a, func() {
		c.sched.Go(func() {
			defer c.Leave(a)
			defer runtime.Gosched() // the next goroutine would have the rest of this one's time
			step()
		})
	})
}

// Enter calls granted, for a step that counts for a, when there is a place. It must not block.
func (c *Computing) Enter(a netip.Addr, granted func()) {
	c.grant(func() { c.steps.Put(granted, a) })
}

// Leave returns the place of a step that counts for a.
func (c *Computing) Leave(a netip.Addr) { c.grant(func() { c.steps.Done(a) }) }

// grant gives the place that a change may have made or found free.
func (c *Computing) grant(change func()) {
	c.mu.Lock()
	change()
	var granted func()
	if c.steps.Running() < c.Most {
		granted, _ = c.steps.Take(math.MaxInt)
	}
	c.mu.Unlock()
	if granted != nil {
		granted()
	}
}

// Place is that of a step. Its methods are secure.Place's.
type Place struct {
	Of   *Computing
	From netip.Addr // on whose account it is
}

// Leave is called before the user's code runs.
func (p Place) Leave() { p.Of.Leave(p.From) }

// Return is called when it has returned. It waits for a place.
func (p Place) Return() {
	granted := make(chan struct{})
	p.Of.Enter(p.From, func() { close(granted) })
	<-granted
	p.Of.sched.Resume()
}
