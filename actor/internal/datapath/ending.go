package datapath

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Whoever ends a connection says goodbye first (docs/wire.md): behind what was posted, before what
// waits, and nothing after it. So a connection that ends without one was not ended by anybody: its
// peer was killed, or cannot be reached.
//
// What is posted is not on the wire yet, and on InfiniBand a queue pair that is disconnected drops
// it. So the goodbye's completion is waited for, but not for long: a peer that takes nothing costs
// goodbyeTime (ident.sayGoodbye).

// Leaving reports whether this side has begun to say goodbye.
func (c *Conn) Leaving() bool { return c.goodbye != goodbyeUnsaid }

// ForgoGoodbye ends the wait for the goodbye, if there is one.
func (c *Conn) ForgoGoodbye() {
	if c.goodbye != goodbyeUnsaid {
		c.goodbye = goodbyeLeft
	}
}

// SayGoodbye posts the goodbye, once. False: the end need not wait for it.
func (c *Conn) SayGoodbye() bool {
	switch {
	case !c.Session.Courteous() || c.goodbye == goodbyeLeft || c.ID.State() != states.Connected:
		return false
	case c.goodbye == goodbyePosted:
		return true
	}
	c.goodbye = goodbyeDue
	if c.Flight.Len() >= c.Depth {
		return true // a completion makes room
	}
	switch err := c.control(wire.TypeGoodbye, 0); {
	case err == nil:
		c.goodbye, c.goodbyeAt = goodbyePosted, c.Flight.next()-1
	case errors.Is(err, errNoRoom):
	default:
		c.goodbye = goodbyeLeft
		return false
	}
	return true
}

// goOn goes on with the goodbye when the device has completed something.
func (c *Conn) goOn() {
	switch c.goodbye {
	case goodbyeDue:
		if c.SayGoodbye() {
			return
		}
	case goodbyePosted:
		if int32(c.Flight.head-c.goodbyeAt) <= 0 {
			return
		}
	default:
		return
	}
	c.goodbye = goodbyeLeft
	c.up.GoodbyeLeft()
}

// control posts a message that is a header only.
func (c *Conn) control(typ wire.Type, flags uint8) error {
	var b [wire.HeaderLen]byte
	c.Session.Header(typ, flags).Put(b[:])
	if err := c.Device.post(c, nil, b[:], false); err != nil {
		return err
	}
	c.Flight.quiet = 0
	c.Session.Sent(typ, flags)
	return nil
}

// Verdict is why a connection ended, of which the device says err; nil is nothing.
func (c *Conn) Verdict(err error) error {
	switch {
	case !c.Session.Courteous() || c.state == connConnecting || c.state == connAborted || c.goodbye != goodbyeUnsaid:
		return err
	case !c.Session.Goodbye():
		if err == nil {
			err = unix.ECONNRESET
		}
		return &LostError{err}
	case errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ETIMEDOUT):
		return nil // the peer had said that it goes
	}
	return err
}

// A queue pair that has failed has ended its connection, whatever rdma_cm says: on InfiniBand it
// does not look at queue pairs, and would call the connection connected for ever. So every work
// request that completes with an error ends it, whoever has posted it (an owner's message, a count
// of ours, an offer, a receive), and so does the device's word (QPFailed). The first one is the
// cause; the flushes behind it are not. A work request that the device does not take is answered,
// and no more: ENOMEM, a Read of memory that is not there.
//
// Two things need time. Of flushes, and of postings that are refused, somebody has to say the
// cause: an error that is on its way, or an end that is. And on iWARP the device ends the
// connection itself, and knows more (a Terminate message's words). So these end no connection until
// FailPatience is over. If nobody has reported an end then, the connection is broken off. In
// an ordinary end the flushes find it ending, or ended.

// FailPatience is how long the device has to report the end of a connection whose queue pair has
// failed.
const FailPatience = 2 * time.Second

// failed takes a sign that the queue pair is dead. Loop goroutine, possibly from inside the device.
func (c *Conn) failed(e *QueuePairError) {
	iwarp := c.ID.Flavor()&states.IWARP != 0
	switch {
	case c.Over() || !iwarp && !c.connected():
	case !iwarp && !e.follows():
		c.up.BreakOff(e)
	default:
		if c.suspect == nil || c.suspect.vague() && !e.vague() {
			c.suspect = e
		}
		if c.patience == nil {
			c.patience = c.l.el.AfterFunc(FailPatience, c.impatient)
		}
	}
}

// impatient ends a connection whose queue pair has failed, and nobody has reported the end.
func (c *Conn) impatient() {
	if c.connected() {
		c.up.BreakOff(c.suspect)
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
			return own // who shuts down does not hear that its peer has ended it
		}
		return err
	}
	c.suspect.Err = err
	return c.suspect
}

// FailedByItself is the device's word that the queue pair has failed. What it has completed is
// reported first.
func (c *Conn) FailedByItself() {
	c.Device.Drain()
	c.failed(&QueuePairError{})
}
