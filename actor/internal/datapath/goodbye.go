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

// ErrPeerLost is found (errors.Is) in the error of a connection that has ended without its peer's
// goodbye: the peer's process was killed, its machine or the network is gone, or its device gave
// the connection up.
var ErrPeerLost = errors.New("the connection has ended without the peer's goodbye")

// LostError is why a connection ended that its peer has not ended: Disconnected.Err and Closed.Err.
// errors.Is: ErrPeerLost, and an errno: ECONNRESET, ETIMEDOUT when the peer was silent for too
// long, or the device's. Peers of version 2 say no goodbye: theirs is no such end.
type LostError struct{ Err error }

func (e *LostError) Error() string { return ErrPeerLost.Error() + ": " + e.Err.Error() }

// Unwrap gives ErrPeerLost and what is known.
func (e *LostError) Unwrap() []error { return []error{ErrPeerLost, e.Err} }

// parting is how far a side is with its goodbye. It only goes forward.
//
//	staying ──► packing ──► waving ──► left
//	               └───────────────────▲
//
// Nothing else is sent from packing on (conn.sends). An end that has waited partingTime goes on as
// if it had left.
type parting uint8

const (
	staying parting = iota
	packing         // there was no room for it yet
	waving          // posted
	left            // it has left, or never will
)

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
		c.parting, c.waved = waving, c.Flight.next-1
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
