package datapath

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The side that ends a connection says goodbye first (docs/wire.md). The goodbye follows what was
// posted, and nothing follows it: what still waits is not sent. So if a connection ends without
// one, its peer was killed or cannot be reached.
//
// A work request that is posted is not yet on the wire, and on InfiniBand a disconnect drops it. So
// this side waits for the goodbye's completion before it disconnects, for at most goodbyeTime
// (ident.sayGoodbye), in case the peer takes nothing.

// Leaving reports whether this side has begun to say goodbye.
func (c *Conn) Leaving() bool { return c.goodbye != goodbyeUnsaid }

// ForgoGoodbye ends the wait for the goodbye, if there is one.
func (c *Conn) ForgoGoodbye() {
	if c.goodbye != goodbyeUnsaid {
		c.goodbye = goodbyeLeft
	}
}

// SayGoodbye posts the goodbye, once. False: there is nothing to wait for.
func (c *Conn) SayGoodbye() bool {
	switch {
	case !c.Session.Courteous() || c.goodbye == goodbyeLeft || c.ID.State() != states.Connected:
		return false
	case c.sec.mute():
		c.goodbye = goodbyeLeft // this side ends the connection all the same
		return false
	case c.goodbye == goodbyePosted:
		return true
	}
	c.goodbye = goodbyeDue
	if c.Flight.Len() >= c.Depth {
		return true // a completion makes room
	}
	switch err := c.farewell(); {
	case err == nil:
		c.goodbye, c.goodbyeAt = goodbyePosted, c.last()
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

// Verdict returns why a connection ended, when the device has reported err, which may be nil.
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

// A queue pair that has failed has ended its connection, whatever rdma_cm says: on InfiniBand
// rdma_cm does not look at queue pairs, and would call the connection connected for ever. So every
// work request that completes with an error ends the connection, whether it was an owner's message,
// a credit update, an offer or a receive; and so does the event QPFailed. The first error is the
// cause, not the flushes that follow. A work request that the device does not accept (ENOMEM, a
// Read of memory that does not exist) only fails itself.
//
// Two kinds of failure have to wait. Flushes and refused postings are only consequences, and the
// error or the end that is their cause may still be on its way. And on iWARP the device ends the
// connection by itself, with a better reason (from a Terminate message). So these break the
// connection off only if nobody has reported its end within FailPatience. In an ordinary end, the
// flushes come when the connection is already ending or ended.

// FailPatience is how long the device has to report the end of a connection whose queue pair has
// failed.
const FailPatience = 2 * time.Second

// failed notes a sign that the queue pair is dead. Loop goroutine, possibly called from inside the
// device.
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

// impatient ends a connection whose queue pair has failed, if nobody has reported its end.
func (c *Conn) impatient() {
	if c.connected() {
		c.up.BreakOff(c.suspect)
	}
}

// refused notes that the device refused a posting, which it does not while the queue pair is alive.
func (c *Conn) refused(op verbs.Opcode, err error) { c.failed(&QueuePairError{Op: op, Err: err}) }

// connected reports whether there is a connection, as far as rdma_cm knows.
func (c *Conn) connected() bool {
	s := c.ID.State()
	return s == states.Connected || s == states.Accepting
}

// Cause returns why a connection has ended. err is what the device has said, own is this side's
// reason for ending it; both may be nil.
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

// FailedByItself handles the device's event that the queue pair has failed, after what it has
// completed.
func (c *Conn) FailedByItself() {
	c.Device.Drain()
	c.failed(&QueuePairError{})
}
