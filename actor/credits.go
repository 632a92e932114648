package actor

import "fmt"

// credits is the flow control of one connection (docs/wire.md). All counts are absolute, of data messages since the connection
// began, modulo 2^32, so an update that is merged with a later one loses nothing, and they are acknowledgements too.
type credits struct {
	send      uint32 // the peer's window: how many may be unconsumed
	sent      uint32 // handed to the device
	acked     uint32 // the peer has said it has consumed so many
	delivered uint64 // the same, not modulo

	receive  uint32 // our window
	received uint32
	consumed uint32 // by the owner
	stated   uint32 // what the peer was told of consumed

	ackNow bool // the peer wants to know as soon as everything is consumed
	ask    bool // we want to know
	asked  bool // we are about to close, and have sent all we had
	final  bool // and have told the peer of everything
}

// window is how many messages may be sent now.
func (c *credits) window() uint32 { return c.send - (c.sent - c.acked) }

// header makes the header of the next message; it carries what was consumed.
func (c *credits) header(typ, flags uint8) header { return header{typ, flags, c.consumed} }

// take accounts for a message of the peer's.
func (c *credits) take(h header) error {
	news := h.consumed - c.acked
	if news > c.sent-c.acked {
		return &ProtocolError{fmt.Sprintf("the peer says it has consumed %d messages of %d", h.consumed, c.sent)}
	}
	c.acked = h.consumed
	c.delivered += uint64(news)
	if h.flags&flagAckNow != 0 {
		c.ackNow = true
	}
	if h.typ == typeData {
		if c.received-c.consumed >= c.receive {
			return &ProtocolError{fmt.Sprintf("the peer has sent more than the %d messages it has credits for", c.receive)}
		}
		c.received++
	}
	return nil
}

// due reports whether a credit update should be sent. No rule sends more of them than docs/wire.md says may be under way: on some
// devices each one must find a receive.
func (c *credits) due() bool {
	switch unstated := c.consumed - c.stated; {
	case c.ask:
		return true
	case c.ackNow && c.consumed == c.received:
		return true
	case c.finishing() && !c.final:
		return unstated > 0
	default:
		return unstated > 0 && unstated >= (c.receive+1)/2
	}
}

// finishing reports whether we are about to close, and nothing is missing but our own last statement.
func (c *credits) finishing() bool { return c.asked && c.sent == c.acked }

// settled reports whether both sides know all that was consumed of what had arrived when we had nothing else to wait for.
func (c *credits) settled() bool {
	return c.sent == c.acked && !c.ask && (c.consumed == c.stated || c.final)
}

// told notes that a header has been sent.
func (c *credits) told(flags uint8) {
	c.stated = c.consumed
	c.final = c.final || c.finishing()
	if flags&flagAckNow != 0 {
		c.ask = false
	}
	if c.consumed == c.received {
		c.ackNow = false
	}
}

func (c *credits) counts(n *Credits) {
	n.Send = int(c.window())
	n.Unacked = int(c.sent - c.acked)
	n.Unfreed = int(c.received - c.consumed)
	n.Receive = int(c.receive) - n.Unfreed
}
