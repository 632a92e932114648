package eventloop

import "time"

// turnClock is the clock of a loop, which is read once a turn.
type turnClock struct {
	clock Clock     // nil: the wall clock
	base  time.Time // origin of the timers' times
	now   time.Time // the clock at the start of the turn
	stale bool      // now is from an earlier turn
}

// start makes clock's present time the base; nil: the wall clock's, which is virtual time in a
// testing/synctest bubble.
func (c *turnClock) start(clock Clock) {
	c.clock = clock
	c.base = c.present()
	c.now = c.base
}

// read makes the present time that of the turn.
func (c *turnClock) read() { c.now, c.stale = c.present(), false }

func (c *turnClock) present() time.Time {
	if c.clock == nil {
		return time.Now()
	}
	return c.clock.Now()
}

// since turns a time into a number, which is cheap to compare. The base has a monotonic reading
// where the clock has one.
func (c *turnClock) since(t time.Time) int64 { return int64(t.Sub(c.base)) }

// elapsed returns the present time since the base. Of the wall clock only the monotonic half is
// read, which costs half as much. Any goroutine.
func (c *turnClock) elapsed() int64 {
	if c.clock == nil {
		return int64(time.Since(c.base))
	}
	return c.since(c.clock.Now())
}
