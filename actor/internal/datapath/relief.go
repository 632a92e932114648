package datapath

import (
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
)

// A credit update is usually sent when half of the window has been consumed, so that many messages
// share one. An owner that retains more than half never consumes that much, and its peer would
// stall until some other message carries the count. So a peer that has used up its credits is sent
// the free ones:
//
//   - in the next turn, if no message waits for the owner, because the owner may retain those that
//     it holds for a long time,
//   - after reliefAfter, if some wait: an owner that is only slow soon has consumed half of them,
//     and one update is cheaper than one for each.
//
// The same applies to a peer that needs no credits (raw, or foreign): after a pause it resumes when
// half of its window is free, or else in this way.

// reliefAfter is the longest time that a peer waits for credits that are free.
const reliefAfter = time.Millisecond

// relief is the timer of a peer that waits for credits. The zero value is ready for use, and costs
// a timer once the peer has to wait.
type relief struct {
	timer *eventloop.Timer // nil: the peer has not waited yet
	due   reliefDue
}

// reliefDue is the state of relief's timer.
type reliefDue uint8

const (
	reliefStopped reliefDue = iota
	reliefDelayed           // fires within reliefAfter
	reliefSoon              // fires in the next turn
)

// reliever is the connection that relief acts on.
type reliever interface {
	// reliefOwnerIdle reports whether no message waits for the owner.
	reliefOwnerIdle() bool
	// reliefSend sends the free credits to the peer if it still waits for some.
	reliefSend()
}

// schedule starts the timer, or makes it fire sooner if the owner has become idle.
func (r *relief) schedule(el *eventloop.Loop, c reliever) {
	if r.timer == nil {
		r.timer = el.NewTimer(func() {
			r.due = reliefStopped
			c.reliefSend()
		})
	}
	switch {
	case r.due == reliefSoon:
	case c.reliefOwnerIdle():
		r.due = reliefSoon
		r.timer.Reset(0)
	case r.due == reliefStopped:
		r.due = reliefDelayed
		r.timer.Reset(reliefAfter)
	}
}

// reliefCheck schedules relief if the peer waits for credits that are free. The call itself sends
// nothing: more messages may be about to be consumed.
func (c *Conn) reliefCheck() {
	if c.reliefNeeded() {
		c.relief.schedule(c.l.el, c)
	}
}

// reliefNeeded reports whether the peer waits while the owner holds less than the window.
func (c *Conn) reliefNeeded() bool {
	if c.mode == ModeMessages {
		return c.Session.Stands() && c.sends()
	}
	return c.recv.paused && c.l.Shares.may(c)
}

func (c *Conn) reliefOwnerIdle() bool {
	return (c.Arrivals == nil || c.Arrivals.Waiting.Len() == 0) && c.up.Idle()
}

func (c *Conn) reliefSend() {
	switch needed := c.reliefNeeded(); {
	case c.mode != ModeMessages && needed:
		c.l.Shares.resume(c)
	case c.mode != ModeMessages:
		c.l.Shares.again(c) // memory may be short by now
	case needed && c.Flight.hasRoom():
		c.say(wire.TypeCredit, 0) // without room, update schedules it again
	}
}
