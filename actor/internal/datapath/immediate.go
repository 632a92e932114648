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
func (c *Conn) Granted() { c.In.granted = true }

// handleWritten takes a Write of n bytes with an immediate, which has used up the receive chunk.
func (in *intake) handleWritten(chunk *memory.Chunk, n, imm uint32) {
	if in.c.Over() {
		in.reuseReceive(chunk)
		return
	}
	var err error
	if !in.granted {
		err = &wire.ProtocolError{What: fmt.Sprintf("a Write of %d bytes with an immediate, and nothing was granted", n)}
	} else if in.c.terms.Mode == ModeMessages {
		err = in.c.Session.TakeImmediate()
	}
	if err != nil {
		in.reuseReceive(chunk)
		in.c.identifier.BreakOff(err)
		return
	}
	chunk, b := in.keepOrCopy(chunk, chunk.Bytes()[:0])
	m := in.fillInbound(chunk, b)
	m.HasImm, m.Imm, m.Written = true, imm, n
	if in.c.terms.Mode == ModeMessages {
		in.reliefCheck()
	}
	if in.mustQueue() {
		in.queueMessage(m, wire.Offer{}) // at most our credits
	} else {
		in.deliverInbound(m)
	}
	in.c.l.Shares.pauseIfOver(in.c)
}

// operationPosted accounts for an operation that the device has taken.
func (out *sending) operationPosted(o *OneSided) {
	out.c.In.countFetching(o, 1)
	if o.Op != verbs.WriteWithImm {
		return
	}
	out.c.traffic.immediateSent()
	if out.c.terms.Mode == ModeMessages {
		out.c.Session.SentImmediate()
		out.c.reportCounts()
	}
}

// owesCredit reports whether the oldest operation that waits has to have a credit.
func (out *sending) owesCredit() bool {
	return out.c.terms.Mode == ModeMessages && out.queue.immediateNext()
}
