package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// *ident implements datapath.Identifier. The reports of the end are in disconnect.go.
var _ datapath.Identifier = (*ident)(nil)

func (b *outbox) Deliver(in *datapath.Inbound) {
	m := in.Of.(*Received)
	m.EventBase, m.Data, m.Since, m.from = b.eventBase(), in.Data, in.Since, b
	m.HasImm, m.Imm, m.Written = in.HasImm, in.Imm, int(in.Written)
	m.initRefs()
	b.observeEvent(m)
	b.deliverReceived(m)
}

// deliverReceived sends the owner a message.
func (b *outbox) deliverReceived(m *Received) {
	if b.owner.deliverUncopied(m, b.pid) {
		return
	}
	// The owner has a mailbox that does not report the end of a message, or there is no owner: an
	// owner gets a copy.
	defer func() { _ = m.releaseRef(b.l.exec) }() // its only reference
	if b.owner.pid != nil {
		b.sendEvent(b.owner, m.Clone())
	}
}

func (b *outbox) Idle() bool { return nothingWaits(b.owner.box) && nothingWaits(b.onward) }

func nothingWaits(b *mailbox.Mailbox) bool { return b == nil || b.UserMessageCount() == 0 }

func (b *outbox) Counted() {
	b.callObserver(func(o Observer) { o.Credit(b.pid, b.id.Handle(), b.conn.Counts()) })
}
