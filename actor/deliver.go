package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// *ident implements datapath.Identifier. The reports of the end are in disconnect.go.
var _ datapath.Identifier = (*ident)(nil)

func (b *outbox) Deliver(in *datapath.Inbound) {
	m := in.Of.(*Received)
	m.EventBase, m.Data, m.Since, m.from = b.base(), in.Data, in.Since, b
	m.HasImm, m.Imm, m.Written = in.HasImm, in.Imm, int(in.Written)
	m.begin()
	b.observeEvent(m)
	b.deliver(m)
}

// deliver sends the owner a message.
func (b *outbox) deliver(m *Received) {
	if b.owner.receive(m, b.pid) {
		return
	}
	// The owner has a mailbox that does not report the end of a message, or there is no owner: an
	// owner gets a copy.
	defer func() { _ = m.done(b.l.exec) }() // its only reference
	if b.owner.pid != nil {
		b.send(b.owner, m.Clone())
	}
}

func (b *outbox) Idle() bool { return nothingWaits(b.owner.box) && nothingWaits(b.onward) }

func nothingWaits(b *mailbox.Mailbox) bool { return b == nil || b.UserMessageCount() == 0 }

func (b *outbox) Sent(s *datapath.Outgoing) {
	b.reply(s.Of.(*Send).sender, &Sent{b.base(), s.Len()})
}

func (b *outbox) SendFailed(s *datapath.Outgoing, err error) {
	ev := &SendFailed{FailureBase: b.failure(nil, "send", err), Bytes: s.Len(), Sends: 1}
	ev.History = nil // it would be the same in a thousand of them
	sender := s.Of.(*Send).sender
	s.Recycle()
	b.reply(sender, ev)
}

func (b *outbox) SendRefused(s *datapath.Outgoing, kind, err error) {
	b.refuseSends(s.Of.(*Send).sender, 1, s.Len(), kind, err)
}

func (b *outbox) Writable() { b.notify(&Writable{b.base()}) }

func (b *outbox) Counted() {
	b.observe(func(o Observer) { o.Credit(b.pid, b.id.Handle(), b.conn.Counts()) })
}
