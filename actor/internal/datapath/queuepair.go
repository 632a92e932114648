package datapath

import (
	"time"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// A queue pair that has failed has ended its connection, whatever rdma_cm says: on InfiniBand it
// does not look at queue pairs, and would call the connection connected for ever. So every work
// request that completes with an error ends it, whoever has posted it (an owner's message, a count
// of ours, an offer, a receive), and so does the device's word (QPFailed). The first one is the
// cause; the flushes behind it are not. A work request that the device does not take is answered,
// and no more: ENOMEM, a Read of memory that is not there.
//
// Two things need time. Of flushes, and of postings that are refused, somebody has to say the
// cause: an error that is on its way, or an end that is. And on iWARP the device ends the
// connection itself, and knows more (a Terminate message's words). So these are held against nobody
// until failPatience is over; if nobody has told of an end then, the connection is broken off. In
// an ordinary end the flushes find it ending, or ended.

// FailPatience is how long the device has to tell of the end of a connection whose queue pair has
// failed.
const FailPatience = 2 * time.Second

// failed takes a sign that the queue pair is dead. Loop goroutine, possibly from inside the device.
func (c *Conn) failed(e *QueuePairError) {
	iwarp := c.ID.Flavor()&states.IWARP != 0
	switch {
	case c.Over() || !iwarp && !c.connected():
	case !iwarp && !e.follows():
		c.Up.BreakOff(e)
	default:
		if c.suspect == nil || c.suspect.vague() && !e.vague() {
			c.suspect = e
		}
		if c.patience == nil {
			c.patience = c.l.el.AfterFunc(FailPatience, c.impatient)
		}
	}
}

// impatient ends a connection whose queue pair has failed, and nobody has told of the end.
func (c *Conn) impatient() {
	if c.connected() {
		c.Up.BreakOff(c.suspect)
	}
}

// refused notes that a posting was, which the device takes as long as the queue pair lives.
func (c *Conn) refused(op verbs.Opcode, err error) { c.failed(&QueuePairError{Op: op, Err: err}) }

// connected reports whether there is a connection, as far as rdma_cm knows.
func (c *Conn) connected() bool {
	s := c.ID.State()
	return s == states.Connected || s == states.Accepting
}

// Cause is why a connection has ended of which nothing else is known but err, and what this side
// has ended it for: own.
func (c *Conn) Cause(err, own error) error {
	switch {
	case c.broken != nil:
		return c.broken
	case c.suspect == nil || c.suspect.vague() || c.Session.Goodbye():
		// who has said goodbye has ended it, whatever failed then
		if err == nil {
			return own // who shuts down is not told that its peer has ended it
		}
		return err
	}
	c.suspect.Err = err
	return c.suspect
}

// FailedByItself is the device's word that the queue pair has failed. What it has completed is told
// first.
func (c *Conn) FailedByItself() {
	c.Device.Drain()
	c.failed(&QueuePairError{})
}
