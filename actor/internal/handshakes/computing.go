package handshakes

import (
	"math"
	"net/netip"
	"runtime"
	"sync"

	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// Computing bounds how many steps of handshakes are computed at a time. Without that bound, a
// thousand unauthenticated peers would start a thousand goroutines that compete with the loops for
// processors. The others wait, and addresses take turns. The number of waiting steps is bounded by
// Limits.Handshakes, and by how many connections the program itself dials.
//
// A step leaves its place while it runs the user's code, which may block.
type Computing struct {
	// Most is the maximum number of steps computed at a time.
	Most int

	sched *sched.Scheduler

	mu    sync.Mutex
	steps fairshare.Queue[netip.Addr, func()] // steps by the address that they count for
}

// Places sets Most to half of the processors, or to 2 in a simulation, which must not depend on the
// machine.
func (c *Computing) Places(s *sched.Scheduler) {
	c.sched, c.Most = s, 2
	if s == nil {
		c.Most = max(1, runtime.GOMAXPROCS(0)/2)
	}
}

// Do computes step on a new goroutine when there is a place. It counts for the network address a;
// the zero address stands for outgoing connections.
func (c *Computing) Do(a netip.Addr, step func()) {
	c.Enter(a, func() {
		c.sched.Go(func() {
			defer c.Leave(a)
			// the next goroutine would inherit the rest of this one's time slice
			defer runtime.Gosched()
			step()
		})
	})
}

// Enter calls granted, for a step that counts for a, when there is a place. It must not block.
func (c *Computing) Enter(a netip.Addr, granted func()) {
	c.changeAndGrant(func() { c.steps.Put(granted, a) })
}

// Leave returns the place of a step that counts for a.
func (c *Computing) Leave(a netip.Addr) { c.changeAndGrant(func() { c.steps.Done(a) }) }

// changeAndGrant makes a change and then assigns a free place, if there is one.
func (c *Computing) changeAndGrant(change func()) {
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

// Place is the place of a step. It implements secure.Place.
type Place struct {
	Of   *Computing
	From netip.Addr // the address that it counts for
}

// Leave is called before the user's code runs.
func (p Place) Leave() { p.Of.Leave(p.From) }

// Return is called after it has returned. It waits for a place.
func (p Place) Return() {
	granted := make(chan struct{})
	p.Of.Enter(p.From, func() { close(granted) })
	<-granted
	p.Of.sched.Resume()
}
