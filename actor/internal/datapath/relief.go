package datapath

import (
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
)

// A credit update waits until half of the window was consumed, so that many messages share one. An
// owner that retains more than half never consumes so much, and its peer would stand still until
// something else carries the count. So a peer that has used up its credits is sent those that are
// free:
//
//   - at once, if no message waits for the owner, because what it has it may retain for long,
//   - after reliefAfter, if some wait: an owner that is only slow soon has consumed half of them,
//     and one update is cheaper than one for each.
//
// It is the same with a peer that needs no credits (raw, or foreign): once it was paused it goes on
// when half of its window is free, or else in this way.

// reliefAfter is how long a peer waits at most for credits that are free.
const reliefAfter = time.Millisecond

// relief is the timer of a peer that waits for credits.
type relief struct {
	*eventloop.Timer
	armed bool
	soon  bool // to fire in the next turn
}

// relieve has the peer be sent what is free, if it stands still. Not within the call: more may be
// about to be consumed.
func (c *Conn) relieve() {
	if !c.stands() {
		return
	}
	r := c.relief
	if r == nil {
		r = new(relief)
		r.Timer = c.l.el.NewTimer(c.relieved)
		c.relief = r
	}
	switch {
	case r.soon:
	case c.idle():
		r.armed, r.soon = true, true
		r.Reset(0)
	case !r.armed:
		r.armed = true
		r.Reset(reliefAfter)
	}
}

// relieved is called when the timer fires.
func (c *Conn) relieved() {
	r := c.relief
	r.armed, r.soon = false, false
	switch stands := c.stands(); {
	case c.mode != ModeMessages && stands:
		c.l.Shares.resume(c)
	case c.mode != ModeMessages:
		c.l.Shares.again(c) // memory may be short by now
	case stands && c.Flight.Len() < c.Depth:
		c.say(wire.TypeCredit, 0) // without room update relieves it again
	}
}

// stands reports whether the peer waits, while the owner has less than the window.
func (c *Conn) stands() bool {
	if c.mode == ModeMessages {
		return c.Session.Stands() && c.sends()
	}
	return c.recv.paused && c.l.Shares.may(c)
}

// idle reports whether nothing that has come still has to get to the owner.
func (c *Conn) idle() bool {
	return (c.Arrivals == nil || c.Arrivals.Waiting.Len() == 0) && c.up.Idle()
}
