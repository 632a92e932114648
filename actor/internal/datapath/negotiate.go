package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Messages of up to some size are sent at once, into receives that hold them. Larger ones are
// offered, and the receiver reads them into memory of their size (docs/wire.md). This file decides
// those sizes before the connection is established.

// The sizes of what goes at once, that is of receives. Where a receive is taken only when its
// message is there, and nothing is copied at the receiving side, larger ones cost less.
// docs/design.md has the measurements.
const (
	eagerAsked  = 64 << 10 // verbs.DeviceAttr.AsksForReceives
	EagerPosted = 16 << 10 // each credit costs one
	// eagerCrowded is the size for a connection that is made when one receive for each existing
	// connection takes half of the memory that is kept for them.
	eagerCrowded = 4 << 10
	// unit is what a hello counts sizes in.
	unit = 1 << 10
	// maxRawMessage is the largest receive of a connection without a hello: each message has one
	// of its own.
	maxRawMessage = 64<<20 - unit
	// DefaultCredits is what an owner grants who has not said.
	DefaultCredits = 32
)

// Hello is what this side says of itself on a device.
func (l *Loop) Hello(t *Terms, attr verbs.DeviceAttr) wire.Hello {
	limit := l.limits.Receive
	eager := l.largestReceive(t, &attr)
	if l.resizable(t, &attr) {
		eager = t.begins(eager)
	}
	if t.Promised > 0 {
		eager = t.Promised
	}
	h := wire.Hello{Features: t.Features, Credits: t.Credits, Eager: eager, MaxMessage: t.Messages}
	if h.MaxMessage = min(h.MaxMessage, max(h.Eager, t.largest(limit/2))); !t.Reads {
		h.MaxMessage = h.Eager
	}
	return h
}

// largestReceive is the largest message, in bytes, that a receive of such a connection holds:
// several fit into what arenas may have.
func (l *Loop) largestReceive(t *Terms, attr *verbs.DeviceAttr) int {
	return max(min(l.eager(t, *attr), t.Messages, l.limits.Receive/8&^(unit-1)), unit)
}

// eager is the largest message, in bytes, that this side sends at once on a device, whatever its
// peer says that it could receive: the peer's word must not decide how much memory is used here.
func (l *Loop) eager(t *Terms, attr verbs.DeviceAttr) int {
	switch {
	case t.Eager > 0:
		return min(t.Eager, wire.MaxEager)
	case attr.AsksForReceives && t.Reads && l.Shares.crowded():
		return eagerCrowded
	case attr.AsksForReceives:
		return eagerAsked
	}
	return EagerPosted
}

// large reports whether c may have to offer messages, or to read them. The peer's receives may hold
// only LeastPosted, or that later.
func (c *Conn) large() bool {
	peer := &c.terms.Peer
	switch {
	case c.mode != ModeMessages:
		return false
	case c.sizes.expectsOffers() || peer.MaxMessage > peer.Eager:
		return true
	case c.terms.asks():
		return c.terms.Serves
	}
	return peer.Version >= 4 && peer.MaxMessage > LeastPosted
}

// bare is the largest message, in bytes, that is sent to a peer without a hello; byDefault if the
// owner has not said.
func (t *Terms) bare(byDefault int) int {
	if t.SendMost > 0 {
		return min(t.SendMost, maxRawMessage)
	}
	return byDefault
}

// SendDepth is how many sends are posted at most; what exceeds it waits in the queue.
const SendDepth = 128

// SendsUnderWay is how many sends a new connection's queue pair has room for. The kernel's devices
// take memory for each from the beginning, rxe half a KiB, which is most of what a queue pair
// takes to be made: there it is as many as can be of use, by what the peer's hello grants, or
// before there is one by what we grant. Without credits it is as many as the owner has asked for
// receives.
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
	if !ok && c.mode == ModeMessages {
		c.mode = ModeForeign
		c.sizes.start(c.terms.bare(c.sizes.direct))
	}
	if c.mode != ModeMessages {
		c.sizes.agreeBare(limit)
		return
	}
	c.Session.Agree(h)
	most := c.l.eager(&c.terms, c.Device.attr)
	if limit -= c.terms.perMessage(); limit > 0 {
		most = min(most, limit)
	}
	c.sizes.agreeHello(h, &c.terms, most, c.l.limits.Send, c.res.scoped() && c.terms.Serves)
}

// Promised is how many bytes a receive holds by this side's hello; 0: it sends none.
func (c *Conn) Promised() int { return c.terms.Promised }

// perMessage is how many bytes more than the owner's a message has.
func (t *Terms) perMessage() int {
	if t.Features != 0 {
		return wire.HeaderLen + secure.Overhead
	}
	return wire.HeaderLen
}

// Want changes what Agree assumes about Reads, when the owner asks again after a refusal.
func (c *Conn) Want(t Terms) {
	c.terms.Reads, c.terms.Serves = t.Reads, t.Serves
	if c.sec != nil {
		c.sec.handshake = t.Handshake
	}
}

// largest is the largest message whose region has at most n bytes.
func (t *Terms) largest(n int) int {
	fit := memory.Fitting(n)
	if t.Features != 0 {
		fit -= secure.LargeLen(fit) - fit
	}
	return fit
}

// regionSize is the size of the region for a message of n bytes.
func (t *Terms) regionSize(n int) int {
	if t.Features != 0 {
		n = secure.LargeLen(n)
	}
	return memory.RegionSize(n)
}
