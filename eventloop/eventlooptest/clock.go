package eventlooptest

import (
	"sync"
	"time"
)

// Clock is an eventloop.Clock that stands still until it is moved. Any goroutine.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	pollers []*Poller
}

// NewClock makes a clock that shows start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now implements eventloop.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d and ends the waits of the Pollers on it: their loops look at the clock again.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for _, p := range c.pollers {
		p.nudge()
	}
}

func (c *Clock) add(p *Poller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollers = append(c.pollers, p)
}
