package eventlooptest

import (
	"sync"
	"time"
)

// Clock is an eventloop.Clock that stands still until it is moved. Any goroutine.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	alarms []alarm
}

type alarm struct {
	at   time.Time
	ring chan time.Time
}

// NewClock makes a clock that shows start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now implements eventloop.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d and ends the waits of Pollers on it whose time has come.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	kept := c.alarms[:0]
	for _, a := range c.alarms {
		if a.at.After(c.now) {
			kept = append(kept, a)
		} else {
			a.ring <- c.now
		}
	}
	clear(c.alarms[len(kept):])
	c.alarms = kept
}

// after rings once the clock shows d more than now; stop forgets it.
func (c *Clock) after(d time.Duration) (ring <-chan time.Time, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := alarm{c.now.Add(d), make(chan time.Time, 1)}
	c.alarms = append(c.alarms, a)
	return a.ring, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range c.alarms {
			if c.alarms[i] == a {
				c.alarms = append(c.alarms[:i], c.alarms[i+1:]...)
				return
			}
		}
	}
}
