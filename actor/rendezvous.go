package actor

import (
	"github.com/rdmactor/rdmactor/cmid"
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
)

// hello is what this side says of itself on a device.
func (it *ident) hello(attr verbs.DeviceAttr) hello {
	limit := it.rt.cfg.limits.ReceiveMemory
	eager := max(min(it.eager(attr), it.opts.maxMessage, limit/8&^(kib-1)), kib) // so that some fit what arenas may have
	h := hello{credits: it.opts.credits, eager: eager, maxMessage: it.opts.maxMessage}
	if h.maxMessage = min(h.maxMessage, max(h.eager, fitting(limit/2))); !it.reading {
		h.maxMessage = h.eager
	}
	return h
}

// eager is the largest message, in bytes, that this side sends at once on a device, whatever its
// peer says that it could receive: the peer's word must not decide how much memory is held here.
func (it *ident) eager(attr verbs.DeviceAttr) int {
	switch {
	case it.opts.eager > 0:
		return min(it.opts.eager, maxEager)
	case attr.AsksForReceives && it.reading && it.l.shares.crowded():
		return eagerCrowded
	case attr.AsksForReceives:
		return eagerAsked
	}
	return eagerPosted
}

// depths takes what a user's Connect or Accept says about Reads, and what the peer's request has
// said of them, if there was one; nil leaves them to the device, which has some.
func (it *ident) depths(p, request *cmid.ConnParam) {
	it.served, it.reading = true, true
	for _, p := range [...]*cmid.ConnParam{p, request} {
		if p != nil {
			it.served = it.served && p.ResponderResources > 0
			it.reading = it.reading && p.InitiatorDepth > 0
		}
	}
}

// large reports whether c may have to offer messages, or to read them.
func (c *conn) large() bool {
	peer := &c.it.peerHello
	return c.mode == modeMessages && (c.takes > c.eager || peer.maxMessage > peer.eager)
}
