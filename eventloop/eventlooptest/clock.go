package eventlooptest

import (
	"sync"
	"time"
)

// Clock is an eventloop.Clock that stands still until it is moved. Any goroutine.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	nudges []func() // of the Pollers on it
}

// NewClock makes a clock that shows start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now implements eventloop.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d and ends the waits of the Pollers on it: their loops look at the
// clock again.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for _, nudge := range c.nudges {
		nudge()
	}
}

func (c *Clock) addNudge(nudge func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nudges = append(c.nudges, nudge)
}
