package actor

import "fmt"

// offersMax is how many offers of a side its peer may not have read.
const offersMax = 8

// credits is the flow control of one connection (docs/wire.md). All counts are absolute, of messages since the connection began, modulo
// 2^32, or of offers, modulo 2^16, so an update that is merged with a later one loses nothing, and they are acknowledgements too.
type credits struct {
	send      uint32 // the peer's window: how many may be unconsumed
	sent      uint32 // handed to the device
	acked     uint32 // the peer has said it has consumed so many
	delivered uint64 // the same, not modulo

	receive  uint32 // our window
	received uint32
	consumed uint32 // by the owner
	stated   uint32 // what the peer was told of consumed

	offered  uint16 // handed to the device
	pulled   uint16 // the peer has said it has read so many
	heard    uint16 // offers of the peer's
	read     uint16 // by us, completely
	readTold uint16 // what the peer was told of read
	reading  bool   // Reads are under way

	probing bool   // ours is not answered
	owing   bool   // the peer's
	beats   uint32 // probes and answers of the peer's

	ackNow bool // the peer wants to know as soon as everything is consumed
	ask    bool // we want to know
	asked  bool // we are about to close, and have sent all we had
	final  bool // and have told the peer of everything
}

// window is how many messages may be sent now.
func (c *credits) window() uint32 { return c.send - (c.sent - c.acked) }

// header makes the header of the next message; it carries what was consumed.
func (c *credits) header(typ, flags uint8) header { return header{typ, flags, c.read, c.consumed} }

// take accounts for a message of the peer's.
func (c *credits) take(h header) error {
	news := h.consumed - c.acked
	if news > c.sent-c.acked {
		return &ProtocolError{fmt.Sprintf("the peer says it has consumed %d messages of %d", h.consumed, c.sent)}
	}
	if h.pulled-c.pulled > c.offered-c.pulled {
		return &ProtocolError{fmt.Sprintf("the peer says it has read %d offers of %d", h.pulled, c.offered)}
	}
	c.acked = h.consumed
	c.delivered += uint64(news)
	c.pulled = h.pulled
	if h.flags&flagAckNow != 0 {
		c.ackNow = true
	}
	switch h.typ {
	case typeCredit:
		c.beats++ // also one without news: see keepalive
	case typeProbe:
		if c.owing {
			return &ProtocolError{"a probe before the last was answered"}
		}
		c.owing = true
		c.beats++
	case typeAnswer:
		if !c.probing {
			return &ProtocolError{"an answer to no probe"}
		}
		c.probing = false
		c.beats++
	}
	if h.control() {
		return nil
	}
	if c.received-c.consumed >= c.receive {
		return &ProtocolError{fmt.Sprintf("the peer has sent more than the %d messages it has credits for", c.receive)}
	}
	c.received++
	if h.typ == typeOffer {
		if c.heard-c.readTold >= offersMax {
			return &ProtocolError{fmt.Sprintf("the peer has made more than %d offers that we have not said to have read", offersMax)}
		}
		c.heard++
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
	case c.read != c.readTold && (!c.reading || c.read-c.readTold >= offersMax/2):
		return true
	default:
		return unstated > 0 && unstated >= (c.receive+1)/2
	}
}

// signs counts what shows that the peer is there.
func (c *credits) signs() uint64 {
	return uint64(c.received) + uint64(c.acked) + uint64(c.pulled) + uint64(c.beats)
}

// finishing reports whether we are about to close, and nothing is missing but our own last statement.
func (c *credits) finishing() bool { return c.asked && c.sent == c.acked }

// settled reports whether both sides know all that was consumed of what had arrived when we had nothing else to wait for.
func (c *credits) settled() bool {
	return c.sent == c.acked && !c.ask && (c.consumed == c.stated || c.final)
}

// told notes that a header has been sent.
func (c *credits) told(flags uint8) {
	c.stated, c.readTold = c.consumed, c.read
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
