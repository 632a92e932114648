package datapath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// OneSided has the device do o, in the order in which operations and messages are submitted,
// except that an operation does not wait for credits, nor for room for an offer: it overtakes the
// messages that do. So a peer that pulls what a message announces can always make room for the
// next. Beyond the send queue's depth operations wait, as many as the caller submits; beyond the
// depth of Reads agreed on with the peer the device has them wait. An error: o was not taken.
func (c *Conn) OneSided(o *OneSided) error {
	if !c.sends() {
		return c.NotSending()
	}
	if next := c.outlook(); next.ops || next.posted >= next.depth || next.step() != stepNone {
		c.seq++
		o.seq = c.seq
		c.Ops.Push(o)
		return nil
	}
	c.postOp(o)
	return nil
}

// postOp hands an operation to the device. Not ok: it has no room, and the operation is back in
// the queue.
func (c *Conn) postOp(o *OneSided) (ok bool) {
	switch err := c.Device.postOp(c, o); {
	case err == nil:
		c.Flight.quiet = 0
		c.fetched(o, 1)
	case errors.Is(err, errNoRoom):
		c.Ops.PushFront(o) // a completion makes room
		c.retry()
		return false
	default:
		o.Owner.Ended(c, o, err)
		// else it is this one that cannot be
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, verbs.ErrNotSupported) {
			c.refused(o.Op, err)
		}
	}
	return true
}
