package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Messages of up to some size go at once, into receives that hold them; larger ones are offered, and the receiver reads them into memory of
// their size (docs/wire.md). Here is what a connection decides about that before there is one.

// The sizes of what goes at once, that is of receives. Where a receive is taken only when its message is there, and nothing is copied at
// the receiving side, larger ones cost less. docs/design.md has the measurements.
const (
	eagerAsked  = 64 << 10 // verbs.DeviceAttr.AsksForReceives
	eagerPosted = 16 << 10 // each credit costs one
	// eagerCrowded is of a connection that is made when half of the memory is needed to have a
	// receive for each of the others.
	eagerCrowded = 4 << 10
	// unit is what a hello counts sizes in.
	unit = 1 << 10
	// maxRawMessage is the largest receive of a connection without a hello: each message has one of its own.
	maxRawMessage = 64<<20 - unit
	// defaultCredits is what an owner grants who has not said.
	defaultCredits = 32
)

// terms is what an identifier wants of its connection.
type terms struct {
	mode      wireMode
	credits   int  // messages that the peer may send before the owner has to consume some
	messages  int  // bytes of the largest
	eager     int  // bytes that are sent at once; 0: what suits the device
	memory    bool // one-sided operations of the owner's
	reads     bool // this side makes Reads
	serves    bool // and serves them
	keepalive keepalive
	peer      wire.Hello // what its request says; zero: it was not the peer who has asked, or it has no hello
}

// hello is what this side says of itself on a device.
func (l *pathLoop) hello(t *terms, attr verbs.DeviceAttr) wire.Hello {
	limit := l.limits.Receive
	eager := max(min(l.eager(t, attr), t.messages, limit/8&^(unit-1)), unit) // so that some fit what arenas may have
	h := wire.Hello{Credits: t.credits, Eager: eager, MaxMessage: t.messages}
	if h.MaxMessage = min(h.MaxMessage, max(h.Eager, fitting(limit/2))); !t.reads {
		h.MaxMessage = h.Eager
	}
	return h
}

// eager is the largest message, in bytes, that this side sends at once on a device, whatever its
// peer says that it could receive: the peer's word must not decide how much memory is held here.
func (l *pathLoop) eager(t *terms, attr verbs.DeviceAttr) int {
	switch {
	case t.eager > 0:
		return min(t.eager, wire.MaxEager)
	case attr.AsksForReceives && t.reads && l.shares.crowded():
		return eagerCrowded
	case attr.AsksForReceives:
		return eagerAsked
	}
	return eagerPosted
}

// large reports whether c may have to offer messages, or to read them.
func (c *conn) large() bool {
	peer := &c.terms.peer
	return c.mode == modeMessages && (c.takes > c.eager || peer.MaxMessage > peer.Eager)
}

// sendDepth is how many sends are posted at most; what exceeds it waits in the queue.
const sendDepth = 128

// sendsUnderWay is how many sends a new connection's queue pair has room for. The kernel's devices take memory for each from the
// beginning, rxe half a KiB, which is most of what a queue pair takes to be made: there it is as many as can be of use, by what the
// peer's hello grants, or before there is one by what we grant. Without credits it is as many as the owner has asked for receives.
func (t *terms) sendsUnderWay(asksForReceives bool) int {
	switch granted := t.peer.Credits; {
	case asksForReceives:
		return sendDepth
	case t.mode != modeMessages:
		return min(t.credits, sendDepth)
	case granted > 0:
		return min(granted+wire.ControlReceives+readsMax, sendDepth)
	}
	return min(max(t.credits, defaultCredits)+wire.ControlReceives+readsMax, sendDepth)
}

// agree takes the peer's hello, or that it has none. limit is what the device takes.
func (c *conn) agree(h wire.Hello, ok bool, limit int) {
	if !ok && c.mode == modeMessages {
		c.mode = modeForeign
	}
	if c.mode == modeMessages {
		c.session.Agree(h)
		c.eager = min(h.Eager, c.l.eager(&c.terms, c.d.attr))
		if limit > 0 {
			limit -= wire.HeaderLen
		}
	}
	if limit > 0 {
		c.eager = min(c.eager, limit)
	}
	c.maxSend = c.eager
	if c.mode == modeMessages {
		if c.maxSend = h.MaxMessage; !c.scoped() || !c.terms.serves {
			c.maxSend = min(c.maxSend, c.eager)
		}
		if limit := c.l.limits.Send; sized(c.maxSend) > limit { // it would wait for ever
			c.maxSend = min(c.maxSend, max(c.eager, fitting(limit)))
		}
	}
}
