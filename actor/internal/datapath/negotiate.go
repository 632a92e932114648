package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Messages up to some size are sent directly, into receives that hold them. Larger ones are
// offered, and the receiver reads them into memory of their size (docs/wire.md). This file decides
// those sizes before the connection is established.

// The sizes of messages that are sent directly, that is of receives. Where a receive is taken only
// when its message is there, and nothing is copied at the receiving side, larger ones cost less.
// docs/design-memory.md has the measurements.
const (
	eagerAsked  = 64 << 10 // verbs.DeviceAttr.AsksForReceives
	EagerPosted = 16 << 10 // each credit costs one
	// eagerCrowded is the size for a connection that is made when one receive for each existing
	// connection takes half of the memory that is kept for them.
	eagerCrowded = 4 << 10
	// unit is the unit of the sizes in a hello.
	unit = 1 << 10
	// maxRawMessage is the largest receive of a connection without a hello: each message has one
	// of its own.
	maxRawMessage = 64<<20 - unit
	// DefaultCredits is the number of credits granted if IDConfig.Credits is zero.
	DefaultCredits = 32
)

// Hello returns this side's hello on a device.
func (l *Loop) Hello(t *Terms, attr verbs.DeviceAttr) wire.Hello {
	limit := l.limits.Receive
	eager := l.largestReceive(t, &attr)
	if l.canResize(t, &attr) {
		eager = t.initialSize(eager)
	}
	if t.Promised > 0 {
		eager = t.Promised
	}
	h := wire.Hello{Features: t.Features, Credits: t.Credits, Eager: eager, MaxMessage: t.Messages}
	if h.MaxMessage = min(h.MaxMessage, max(h.Eager, t.largestFitting(limit/2))); !t.Reads {
		h.MaxMessage = h.Eager
	}
	return h
}

// largestReceive returns the size of the largest message, in bytes, that a receive of such a
// connection holds: arenas have room for several.
func (l *Loop) largestReceive(t *Terms, attr *verbs.DeviceAttr) int {
	return max(min(l.eagerSize(t, *attr), t.Messages, l.limits.Receive/8&^(unit-1)), unit)
}

// eagerSize returns the size of the largest message, in bytes, that this side sends directly on a
// device, whatever its peer could receive: the peer must not decide how much memory is used here.
func (l *Loop) eagerSize(t *Terms, attr verbs.DeviceAttr) int {
	switch {
	case t.Eager > 0:
		return min(t.Eager, wire.MaxEager)
	case attr.AsksForReceives && t.Reads && l.Shares.isCrowded():
		return eagerCrowded
	case attr.AsksForReceives:
		return eagerAsked
	}
	return EagerPosted
}

// mayUseOffers reports whether c may have to offer messages, or to read them. The peer's receives
// may hold only LeastPosted, or shrink to that later.
func (c *Conn) mayUseOffers() bool {
	peer := &c.terms.Peer
	switch {
	case c.terms.Mode != ModeMessages:
		return false
	case c.Out.sizes.expectsOffers() || peer.MaxMessage > peer.Eager:
		return true
	case c.terms.isActive():
		return c.terms.Serves
	}
	return peer.MaxMessage > LeastPosted
}

// bareLimit returns the size of the largest message, in bytes, that is sent to a peer without a
// hello; byDefault if the owner has set none.
func (t *Terms) bareLimit(byDefault int) int {
	if t.SendMost > 0 {
		return min(t.SendMost, maxRawMessage)
	}
	return byDefault
}

// SendDepth is the maximum number of posted sends; further ones wait in the queue.
const SendDepth = 128

// SendsUnderWay returns the depth of a new connection's send queue. The kernel's devices allocate
// memory for each send beforehand, rxe half a KiB, which is most of a queue pair's cost: there the
// depth is the number of sends that can be of use, by the credits of the peer's hello, or before
// there is one by this side's. Without credits it is the number of receives that the owner has
// asked for.
func (t *Terms) SendsUnderWay(asksForReceives bool) int {
	switch granted := t.Peer.Credits; {
	case asksForReceives:
		return SendDepth
	case t.Mode != ModeMessages:
		return min(t.Credits, SendDepth)
	case granted > 0:
		return min(granted+wire.ControlReceives+ReadsMax, SendDepth)
	}
	return min(max(t.Credits, DefaultCredits)+wire.ControlReceives+ReadsMax, SendDepth)
}

// Agree applies the peer's hello; not ok: it has sent none. limit is the device's largest message,
// 0 if it has no limit.
func (c *Conn) Agree(h wire.Hello, ok bool, limit int) {
	if !ok && c.terms.Mode == ModeMessages {
		c.terms.Mode = ModeForeign
		c.Out.sizes.initLargest(c.terms.bareLimit(c.Out.sizes.direct))
	}
	if c.terms.Mode != ModeMessages {
		c.Out.sizes.agreeBare(limit)
		return
	}
	c.Session.Agree(h)
	most := c.l.eagerSize(&c.terms, c.Device.attr)
	if limit -= c.terms.perMessage(); limit > 0 {
		most = min(most, limit)
	}
	c.Out.sizes.agreeHello(h, &c.terms, most, c.l.limits.Send, c.res.hasOwnDomain() && c.terms.Serves)
}

// Promised returns the bytes that a receive holds by this side's hello; 0: it sends none.
func (c *Conn) Promised() int { return c.terms.Promised }

// perMessage returns the bytes that a message has besides the owner's.
func (t *Terms) perMessage() int {
	if t.Features != 0 {
		return wire.HeaderLen + secure.Overhead
	}
	return wire.HeaderLen
}

// Want changes the use of Reads that Agree assumes, when the owner asks again after a refusal.
func (c *Conn) Want(t Terms, h Handshake) {
	c.terms.Reads, c.terms.Serves = t.Reads, t.Serves
	if c.Sec != nil {
		c.Sec.handshake = h
	}
}

// largestFitting returns the size of the largest message whose region has at most n bytes.
func (t *Terms) largestFitting(n int) int {
	fit := memory.Fitting(n)
	if t.Features != 0 {
		fit -= secure.LargeLen(fit) - fit
	}
	return fit
}

// regionSize returns the size of the region for a message of n bytes.
func (t *Terms) regionSize(n int) int {
	if t.Features != 0 {
		n = secure.LargeLen(n)
	}
	return memory.RegionSize(n)
}
