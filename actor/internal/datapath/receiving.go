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
		c.give(chunk)
		return
	}
	if c.Sec != nil {
		var ok bool
		if b, ok = c.Sec.open(b); !ok {
			c.give(chunk)
			return
		}
	}
	if c.mode == ModeMessages {
		h, from, n, err := c.account(b)
		if err != nil {
			c.give(chunk)
			c.up.BreakOff(err)
			return
		}
		c.recv.resize.shrink()
		if c.out != nil {
			c.out.read(c.Session.Unread(), &c.Flight)
		}
		c.creditWaitCheck()
		c.reliefCheck()
		switch h.Type {
		case wire.TypeCredit, wire.TypeGoodbye, wire.TypeProbe, wire.TypeAnswer, wire.TypeKeyUpdate, wire.TypeReceives:
			c.give(chunk)
			c.Device.pump(c)
			c.observe()
			return
		case wire.TypeOffer:
			c.give(chunk)
			c.put(c.received(nil, nil), from)
			c.recv.resize.demanded(int(from.Length), true)
			c.Arrivals.advance(false)
			if c.waits() {
				c.Device.pump(c)
			}
			return
		case wire.TypeBundle:
			c.Device.unbundle(c, chunk, b[wire.HeaderLen:], n)
			return
		}
		b = b[wire.HeaderLen:]
		c.recv.resize.demanded(len(b), false)
	}
	chunk, b = c.keep(chunk, b)
	if c.delays() {
		c.put(c.received(chunk, b), wire.Offer{}) // at most our credits
		c.l.Shares.check(c)
		return
	}
	c.deliver(c.received(chunk, b))
	c.l.Shares.check(c)
	if c.mode == ModeMessages && c.waits() {
		c.Device.pump(c)
	}
}

// deliver gives the owner a message.
func (c *Conn) deliver(m *Inbound) {
	c.traffic.messageReceived(len(m.Data))
	c.up.Deliver(m)
}

// account parses the header of a message, and the body of an offer or of a bundle, which contains
// n messages, and accounts for them.
func (c *Conn) account(b []byte) (h wire.Header, from wire.Offer, n int, err error) {
	if h, err = c.Sec.parse(b); err != nil {
		return h, from, 0, err
	}
	if h.Type == wire.TypeBundle {
		if n, err = wire.CountBundle(b[wire.HeaderLen:]); err == nil {
			err = c.Session.TakeBundle(h, n)
		}
		return h, from, n, err
	}
	if err = c.Session.Take(h); err != nil {
		return h, from, 0, err
	}
	switch b = b[wire.HeaderLen:]; h.Type {
	case wire.TypeOffer:
		from, err = wire.ParseOffer(b, c.sizes.takes)
		if err == nil && c.Sec != nil {
			err = c.Sec.channel.OpenLarge.Offered(from.Number)
		}
	case wire.TypeReceives:
		var r wire.Receives
		if r, err = wire.ParseReceives(b); err == nil {
			err = c.sizes.takeReceives(r)
		}
	}
	return h, from, 0, err
}

// received makes the event of a message.
func (c *Conn) received(chunk *memory.Chunk, b []byte) *Inbound {
	m := c.l.newInbound()
	c.l.Shares.took(c, chunk, 1)
	m.Data, m.Conn, m.Chunk = b, c, chunk
	return m
}

// delays reports whether incoming messages have to be queued.
func (c *Conn) delays() bool {
	return c.state == connConnecting || c.Arrivals != nil && c.Arrivals.Waiting.Len() > 0
}

// put queues a message, or an offer of one.
func (c *Conn) put(m *Inbound, from wire.Offer) {
	if c.Arrivals == nil {
		c.Arrivals = &arrivals{c: c, from: c.ID.PeerAddr().Source()}
	}
	c.Arrivals.put(m, from)
}

// Consumed takes a message back from the owner.
func (c *Conn) Consumed(m *Inbound) {
	m.Chunk.Overwrite(m.Data, wire.HeaderLen+len(m.Data))
	c.Session.Consume()
	c.give(m.Chunk)
	c.l.freeInbound(m)
	if c.Over() || c.mode != ModeMessages {
		return
	}
	if !c.queue.gathers { // else flush does it
		c.update()
	}
	c.observe()
}

// keep returns a message that its owner may keep: a copy, when memory is short and the receive is
// too large for the message.
func (c *Conn) keep(b *memory.Chunk, data []byte) (*memory.Chunk, []byte) {
	if c.recv.qp == nil || !c.l.Shares.short() || 2*(len(data)+memory.CopyCost) > b.Size() {
		return b, data
	}
	kept := c.recv.pool.copies.Copy(data)
	if kept == nil {
		return b, data
	}
	c.give(b)
	return kept, kept.Bytes()
}

// give takes back a receive buffer that was read. One of the connection's receive queue is posted
// again.
func (c *Conn) give(b *memory.Chunk) {
	if !b.Leave() {
		return // other messages of its bundle are in it
	}
	c.l.Shares.gave(c, b)
	switch {
	case b.Large():
		c.Arrivals.gave(b)
	case b.Repostable() && c.recv.pool.srq == nil && !c.Over():
		if err := c.postRecv(b); err != nil {
			// there is room for it: nothing but the queue pair's end speaks against it
			c.queuePairRefused(verbs.Recv, err)
		}
	default:
		b.Free()
	}
	if c.Over() {
		c.res.reclaim()
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
