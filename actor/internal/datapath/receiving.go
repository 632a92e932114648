package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Receive takes a message of n bytes in chunk.
func (c *Conn) Receive(chunk *memory.Chunk, n int) {
	b := chunk.Bytes()[:n]
	if c.Over() {
		c.In.reuseReceive(chunk)
		return
	}
	if c.Sec != nil {
		var ok bool
		if b, ok = c.Sec.openRecord(b); !ok {
			c.In.reuseReceive(chunk)
			return
		}
	}
	if c.terms.Mode == ModeMessages {
		h, from, n, err := c.In.accountMessage(b)
		if err != nil {
			c.In.reuseReceive(chunk)
			c.identifier.BreakOff(err)
			return
		}
		c.In.resize.shrinkReceives()
		if c.Out.offers != nil {
			c.Out.offers.releaseRead(c.Session.Unread())
		}
		c.Out.creditWaitCheck()
		c.In.reliefCheck()
		switch h.Type {
		case wire.TypeCredit, wire.TypeGoodbye, wire.TypeProbe, wire.TypeAnswer, wire.TypeKeyUpdate, wire.TypeReceives:
			c.In.reuseReceive(chunk)
			c.Device.queuePump(c)
			c.reportCounts()
			return
		case wire.TypeOffer:
			c.In.reuseReceive(chunk)
			c.In.queueMessage(c.In.fillInbound(nil, nil), from)
			c.In.resize.noteDemand(int(from.Length), true)
			c.In.Arrivals.readOffers(false)
			if c.Out.awaitsCredits() {
				c.Device.queuePump(c)
			}
			return
		case wire.TypeBundle:
			c.Device.unbundleBegin(c, chunk, b[wire.HeaderLen:], n)
			return
		}
		b = b[wire.HeaderLen:]
		c.In.resize.noteDemand(len(b), false)
	}
	chunk, b = c.In.keepOrCopy(chunk, b)
	if c.In.mustQueue() {
		c.In.queueMessage(c.In.fillInbound(chunk, b), wire.Offer{}) // at most our credits
		c.l.Shares.pauseIfOver(c)
		return
	}
	c.In.deliverInbound(c.In.fillInbound(chunk, b))
	c.l.Shares.pauseIfOver(c)
	if c.terms.Mode == ModeMessages && c.Out.awaitsCredits() {
		c.Device.queuePump(c)
	}
}

// deliverInbound delivers a message to the owner.
func (in *intake) deliverInbound(m *Inbound) {
	in.c.traffic.messageReceived(len(m.Data))
	in.c.identifier.Deliver(m)
}

// accountMessage parses the header of a message, and the body of an offer or of a bundle, which
// contains n messages, and accounts for them.
func (in *intake) accountMessage(b []byte) (h wire.Header, from wire.Offer, n int, err error) {
	if h, err = in.c.Sec.parseHeader(b); err != nil {
		return h, from, 0, err
	}
	if h.Type == wire.TypeBundle {
		if n, err = wire.CountBundle(b[wire.HeaderLen:]); err == nil {
			err = in.c.Session.TakeBundle(h, n)
		}
		return h, from, n, err
	}
	if err = in.c.Session.Take(h); err != nil {
		return h, from, 0, err
	}
	switch b = b[wire.HeaderLen:]; h.Type {
	case wire.TypeOffer:
		from, err = wire.ParseOffer(b, in.c.Out.sizes.takes)
		if err == nil && in.c.Sec != nil {
			err = in.c.Sec.channel.OpenLarge.Offered(from.Number)
		}
	case wire.TypeReceives:
		var r wire.Receives
		if r, err = wire.ParseReceives(b); err == nil {
			err = in.c.Out.sizes.takeReceives(r)
		}
	}
	return h, from, 0, err
}

// fillInbound fills an unused Inbound with a message, and counts it.
func (in *intake) fillInbound(chunk *memory.Chunk, b []byte) *Inbound {
	m := in.c.l.newInbound()
	in.c.l.Shares.countReceived(in.c, chunk, 1)
	m.Data, m.Conn, m.Chunk = b, in.c, chunk
	return m
}

// mustQueue reports whether incoming messages have to be queued.
func (in *intake) mustQueue() bool {
	return in.c.state == connConnecting || in.Arrivals != nil && in.Arrivals.Waiting.Len() > 0
}

// queueMessage queues a message, or an offer of one.
func (in *intake) queueMessage(m *Inbound, from wire.Offer) {
	if in.Arrivals == nil {
		in.Arrivals = &arrivals{c: in.c, from: in.c.ID.PeerAddr().Source()}
	}
	in.Arrivals.queueMessage(m, from)
}

// Consumed takes a message back from the owner.
func (c *Conn) Consumed(m *Inbound) {
	m.Chunk.Overwrite(m.Data, wire.HeaderLen+len(m.Data))
	c.Session.Consume()
	c.In.reuseReceive(m.Chunk)
	c.l.freeInbound(m)
	if c.Over() || c.terms.Mode != ModeMessages {
		return
	}
	if !c.Out.queue.gathers { // else postGathered does it
		c.Out.sendUpdates()
	}
	c.reportCounts()
}

// keepOrCopy returns a message that its owner may keep: a copy, when memory is short and the
// receive is too large for the message.
func (in *intake) keepOrCopy(b *memory.Chunk, data []byte) (*memory.Chunk, []byte) {
	if in.qp == nil || !in.c.l.Shares.isShort() || 2*(len(data)+memory.CopyCost) > b.Size() {
		return b, data
	}
	kept := in.pool.copies.Copy(data)
	if kept == nil {
		return b, data
	}
	in.reuseReceive(b)
	return kept, kept.Bytes()
}

// reuseReceive takes back a receive buffer that was read. One of the connection's receive queue is
// posted again.
func (in *intake) reuseReceive(b *memory.Chunk) {
	if !b.Leave() {
		return // other messages of its bundle are in it
	}
	in.c.l.Shares.countReturned(in.c, b)
	switch {
	case b.Large():
		in.Arrivals.releaseConsumed(b)
	case b.Repostable() && in.pool.srq == nil && !in.c.Over():
		if err := in.postRecv(b); err != nil {
			// there is room for it: nothing but the queue pair's end speaks against it
			in.c.queuePairRefused(verbs.Recv, err)
		}
	default:
		b.Free()
	}
	if in.c.Over() { // perhaps the last use of a private domain, or of a device that has gone
		in.c.res.dom.closeUnused()
		in.c.Device.closeUnused()
	}
}

// keepInbound is how many idle ones a loop keeps.
const keepInbound = 1024

// newInbound returns an unused one.
func (l *Loop) newInbound() *Inbound {
	if n := len(l.idle); n > 0 {
		m := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return m
	}
	return l.NewInbound()
}

// freeInbound takes it back. Where returned memory is overwritten it is not used again, so that
// later uses of it are found.
func (l *Loop) freeInbound(m *Inbound) {
	*m = Inbound{Of: m.Of}
	if !overwrite.On && len(l.idle) < keepInbound {
		l.idle = append(l.idle, m)
	}
}
