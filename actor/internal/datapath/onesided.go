package datapath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// OneSided submits o to the device. Operations and messages go in the order in which they are
// submitted, except that an operation overtakes messages that wait for credits or for room for an
// offer. So a peer that reads what a message announces can always make room for the next.
// Operations beyond the send queue's depth wait here, without a limit. Reads beyond the depth
// agreed on with the peer wait in the device. A Write with an immediate needs a credit, and
// operations wait behind it. After an error o was not taken.
func (c *Conn) OneSided(o *OneSided) error {
	if !c.mayPost() {
		return c.NotSending()
	}
	c.Out.postGathered()
	bare := o.Op == verbs.WriteWithImm && c.terms.Mode == ModeMessages && c.Session.Window() == 0
	if next := c.Out.newOutlook(); bare || next.ops || next.posted >= next.depth || next.nextStep() != stepNone {
		c.Out.queue.pushOp(o)
		if c.Out.owesCredit() {
			c.Out.creditWaitNeeded()
			c.l.Shares.resumeOrWait(c)
		}
		return nil
	}
	c.Out.postOp(o)
	return nil
}

// postOp hands an operation to the device. Not ok: it has no room, and the operation is back in
// the queue.
func (out *sending) postOp(o *OneSided) (ok bool) {
	switch err := out.c.Device.postOp(out.c, o); {
	case err == nil:
		out.operationPosted(o)
	case errors.Is(err, errNoRoom):
		out.queue.returnOp(o) // a completion makes room
		out.pumpLater()
		return false
	case errors.Is(err, verbs.ErrQPState): // the connection is over; the cause is yet to come
		o.Issuer.Ended(out.c, o, Flushed())
		out.c.queuePairRefused(o.Op, err)
	default:
		o.Issuer.Ended(out.c, o, err)
		// else it is this one that cannot be
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, verbs.ErrNotSupported) {
			out.c.queuePairRefused(o.Op, err)
		}
	}
	return true
}
