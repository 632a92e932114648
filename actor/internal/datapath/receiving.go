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
		c.In.give(chunk)
		return
	}
	if c.Sec != nil {
		var ok bool
		if b, ok = c.Sec.open(b); !ok {
			c.In.give(chunk)
			return
		}
	}
	if c.terms.Mode == ModeMessages {
		h, from, n, err := c.In.account(b)
		if err != nil {
			c.In.give(chunk)
			c.up.BreakOff(err)
			return
		}
		c.In.resize.shrink()
		if c.Out.offers != nil {
			c.Out.offers.read(c.Session.Unread())
		}
		c.Out.creditWaitCheck()
		c.In.reliefCheck()
		switch h.Type {
		case wire.TypeCredit, wire.TypeGoodbye, wire.TypeProbe, wire.TypeAnswer, wire.TypeKeyUpdate, wire.TypeReceives:
			c.In.give(chunk)
			c.Device.pump(c)
			c.observe()
			return
		case wire.TypeOffer:
			c.In.give(chunk)
			c.In.put(c.In.received(nil, nil), from)
			c.In.resize.demanded(int(from.Length), true)
			c.In.Arrivals.advance(false)
			if c.Out.waits() {
				c.Device.pump(c)
			}
			return
		case wire.TypeBundle:
			c.Device.unbundle(c, chunk, b[wire.HeaderLen:], n)
			return
		}
		b = b[wire.HeaderLen:]
		c.In.resize.demanded(len(b), false)
	}
	chunk, b = c.In.keep(chunk, b)
	if c.In.delays() {
		c.In.put(c.In.received(chunk, b), wire.Offer{}) // at most our credits
		c.l.Shares.check(c)
		return
	}
	c.In.deliver(c.In.received(chunk, b))
	c.l.Shares.check(c)
	if c.terms.Mode == ModeMessages && c.Out.waits() {
		c.Device.pump(c)
	}
}

// deliver gives the owner a message.
func (in *intake) deliver(m *Inbound) {
	in.c.traffic.messageReceived(len(m.Data))
	in.c.up.Deliver(m)
}

// account parses the header of a message, and the body of an offer or of a bundle, which contains
// n messages, and accounts for them.
func (in *intake) account(b []byte) (h wire.Header, from wire.Offer, n int, err error) {
	if h, err = in.c.Sec.parse(b); err != nil {
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

// received makes the event of a message.
func (in *intake) received(chunk *memory.Chunk, b []byte) *Inbound {
	m := in.c.l.newInbound()
	in.c.l.Shares.took(in.c, chunk, 1)
	m.Data, m.Conn, m.Chunk = b, in.c, chunk
	return m
}

// delays reports whether incoming messages have to be queued.
func (in *intake) delays() bool {
	return in.c.state == connConnecting || in.Arrivals != nil && in.Arrivals.Waiting.Len() > 0
}

// put queues a message, or an offer of one.
func (in *intake) put(m *Inbound, from wire.Offer) {
	if in.Arrivals == nil {
		in.Arrivals = &arrivals{c: in.c, from: in.c.ID.PeerAddr().Source()}
	}
	in.Arrivals.put(m, from)
}

// Consumed takes a message back from the owner.
func (c *Conn) Consumed(m *Inbound) {
	m.Chunk.Overwrite(m.Data, wire.HeaderLen+len(m.Data))
	c.Session.Consume()
	c.In.give(m.Chunk)
	c.l.freeInbound(m)
	if c.Over() || c.terms.Mode != ModeMessages {
		return
	}
	if !c.Out.queue.gathers { // else flush does it
		c.Out.update()
	}
	c.observe()
}

// keep returns a message that its owner may keep: a copy, when memory is short and the receive is
// too large for the message.
func (in *intake) keep(b *memory.Chunk, data []byte) (*memory.Chunk, []byte) {
	if in.qp == nil || !in.c.l.Shares.short() || 2*(len(data)+memory.CopyCost) > b.Size() {
		return b, data
	}
	kept := in.pool.copies.Copy(data)
	if kept == nil {
		return b, data
	}
	in.give(b)
	return kept, kept.Bytes()
}

// give takes back a receive buffer that was read. One of the connection's receive queue is posted
// again.
func (in *intake) give(b *memory.Chunk) {
	if !b.Leave() {
		return // other messages of its bundle are in it
	}
	in.c.l.Shares.gave(in.c, b)
	switch {
	case b.Large():
		in.Arrivals.gave(b)
	case b.Repostable() && in.pool.srq == nil && !in.c.Over():
		if err := in.postRecv(b); err != nil {
			// there is room for it: nothing but the queue pair's end speaks against it
			in.c.queuePairRefused(verbs.Recv, err)
		}
	default:
		b.Free()
	}
	if in.c.Over() { // perhaps the last use of a private domain, or of a device that has gone
		in.c.res.dom.vanish()
		in.c.Device.vanish()
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
