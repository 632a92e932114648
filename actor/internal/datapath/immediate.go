package datapath

import (
	"fmt"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// A peer's Write with an immediate uses up a receive, like a message. So it takes a credit, and the
// receive is posted again when the owner has consumed the notification: a peer that
// floods this side stands still, or breaks the protocol, as with messages.

// Granted notes that the owner has given the peer a key to write with: from now on the peer may
// notify it. The right stays when the key is revoked, because earlier Writes may still be on their
// way.
func (c *Conn) Granted() { c.recv.granted = true }

// Immediates reports whether the peer takes Writes with an immediate, as far as its hello states.
// Without a hello that is unknown.
func (c *Conn) Immediates() bool { return c.mode != ModeMessages || c.Session.Immediates() }

// written takes a Write of n bytes with an immediate, which has used up the receive chunk.
func (c *Conn) written(chunk *memory.Chunk, n, imm uint32) {
	if c.Over() {
		c.give(chunk)
		return
	}
	err := c.judgeWritten(n)
	if err != nil {
		c.give(chunk)
		c.up.BreakOff(err)
		return
	}
	chunk, b := c.keep(chunk, chunk.Bytes()[:0])
	m := c.received(chunk, b)
	m.HasImm, m.Imm, m.Written = true, imm, n
	if c.mode == ModeMessages {
		c.reliefCheck()
	}
	if c.delays() {
		c.put(m, wire.Offer{}) // at most our credits
	} else {
		c.deliver(m)
	}
	c.l.Shares.check(c)
}

// judgeWritten returns an error if the peer may not do that.
func (c *Conn) judgeWritten(n uint32) error {
	switch {
	case !c.recv.granted:
		return &wire.ProtocolError{What: fmt.Sprintf("a Write of %d bytes with an immediate, and nothing was granted", n)}
	case c.mode == ModeMessages:
		return c.Session.TakeImmediate()
	}
	return nil
}

// posted accounts for an operation that the device has taken.
func (c *Conn) posted(o *OneSided) {
	c.fetched(o, 1)
	if o.Op != verbs.WriteWithImm {
		return
	}
	c.traffic.immediateSent()
	if c.mode == ModeMessages {
		c.Session.SentImmediate()
		c.observe()
	}
}

// owesCredit reports whether the oldest operation that waits has to have a credit.
func (c *Conn) owesCredit() bool {
	return c.mode == ModeMessages && c.queue.immediateNext()
}
