package datapath

import (
	"errors"
	"fmt"

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

// enter takes the protection domain that c's queue pair is in, and what it receives into and sends
// from.
//
// What a connection lets its peer reach is in a domain that no other queue pair is in: another
// peer cannot reach it, whatever it knows. A device that shares Device.PD's memory (the embedded
// one) gives every connection a domain, which costs it a few bytes. Elsewhere, as InfiniBand has
// it, everything that a queue pair touches must be in its domain, so its receives and what it
// sends from cannot be the loop's: a connection there has a domain, and memory of its own, only if
// WithMemory says that it needs one.
func (c *Conn) enter() error {
	d := c.Device
	c.pd, c.dom = d.Shared.pd, d.Shared
	if !d.attr.SharesMemory && !c.terms.Memory && !c.large() {
		return nil
	}
	pd, err := d.Verbs.AllocPD()
	if err != nil {
		return fmt.Errorf("alloc_pd on %s: %w", d.Verbs.Name(), err)
	}
	c.pd = pd
	if !d.attr.SharesMemory {
		c.dom = newDomain(d, pd, true)
	}
	return nil
}

// Scoped reports whether c's protection domain is its own.
func (c *Conn) Scoped() bool { return c.pd != c.Device.Shared.pd }

// leave gives the domain back; the queue pair is not in it any more.
func (c *Conn) leave() {
	if c.pool != nil {
		c.pool.leave()
	}
	switch {
	case c.dom.own:
		c.dom.leave()
	case c.Scoped():
		c.Device.closed("dealloc_pd", c.pd.Close())
	}
}
