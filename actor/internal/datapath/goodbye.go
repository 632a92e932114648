package datapath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
)

// Whoever ends a connection says goodbye first (docs/wire.md): behind what was posted, before what
// waits, and nothing after it. So a connection that ends without one was not ended by anybody: its
// peer was killed, or cannot be reached.
//
// What is posted is not on the wire yet, and on InfiniBand a queue pair that is disconnected drops
// it. So the goodbye's completion is waited for, but not for long: a peer that takes nothing costs
// partingTime (ident.farewell).

// Leaving reports whether this side has begun to say goodbye.
func (c *Conn) Leaving() bool { return c.parting != staying }

// PartNow ends the wait for the goodbye, if there is one.
func (c *Conn) PartNow() {
	if c.parting != staying {
		c.parting = left
	}
}

// Wave posts the goodbye, once. False: the end need not wait for it.
func (c *Conn) Wave() bool {
	switch {
	case !c.Session.Courteous() || c.parting == left || c.ID.State() != states.Connected:
		return false
	case c.parting == waving:
		return true
	}
	c.parting = packing
	if c.Flight.Len() >= c.Depth {
		return true // a completion makes room
	}
	switch err := c.control(wire.TypeGoodbye, 0); {
	case err == nil:
		c.parting, c.waved = waving, c.Flight.next()-1
	case errors.Is(err, errNoRoom):
	default:
		c.parting = left
		return false
	}
	return true
}

// goOn goes on with the goodbye when the device has completed something.
func (c *Conn) goOn() {
	switch c.parting {
	case packing:
		if c.Wave() {
			return
		}
	case waving:
		if int32(c.Flight.head-c.waved) <= 0 {
			return
		}
	default:
		return
	}
	c.parting = left
	c.Up.GoodbyeLeft()
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
	case !c.Session.Courteous() || c.state == connConnecting || c.state == connAborted || c.parting != staying:
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
