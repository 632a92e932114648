package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// *ident implements datapath.Identifier. BreakOff is in ending.go, with the other ends.
var _ datapath.Identifier = (*ident)(nil)

func (it *ident) Deliver(in *datapath.Inbound) {
	m := in.Of.(*Received)
	m.EventBase, m.Data, m.Since, m.from = it.base(), in.Data, in.Since, it
	m.HasImm, m.Imm, m.Written = in.HasImm, in.Imm, int(in.Written)
	m.begin()
	it.observeEvent(m)
	it.deliver(m)
}

// deliver sends the owner a message.
func (it *ident) deliver(m *Received) {
	if it.owner.receive(m, it.pid) {
		return
	}
	// The owner has a mailbox that does not report the end of a message, or there is no owner: an
	// owner gets a copy.
	defer func() { _ = m.done(it.l.exec) }() // its only reference
	if it.owner.pid != nil {
		it.send(it.owner, m.Clone())
	}
}

func (it *ident) Idle() bool { return nothingWaits(it.owner.box) && nothingWaits(it.onward) }

func nothingWaits(b *mailbox.Mailbox) bool { return b == nil || b.UserMessageCount() == 0 }

func (it *ident) Sent(s *datapath.Outgoing) {
	it.reply(s.Of.(*Send).sender, &Sent{it.base(), s.Len()})
}

func (it *ident) SendFailed(s *datapath.Outgoing, err error) {
	ev := &SendFailed{FailureBase: it.failure(nil, "send", err), Bytes: s.Len(), Sends: 1}
	ev.History = nil // it would be the same in a thousand of them
	sender := s.Of.(*Send).sender
	s.Recycle()
	it.reply(sender, ev)
}

func (it *ident) SendRefused(s *datapath.Outgoing, kind, err error) {
	it.refuseSends(s.Of.(*Send).sender, 1, s.Len(), kind, err)
}

func (it *ident) Writable() { it.notify(&Writable{it.base()}) }

func (it *ident) Counted() {
	it.observe(func(o Observer) { o.Credit(it.pid, it.id.Handle(), it.conn.Counts()) })
}

func (it *ident) Drained() { it.box.PostUserMessage(&drained{}) }

func (it *ident) GoodbyeLeft() { it.box.PostUserMessage(&goodbyeLeft{}) }

func (it *ident) RenewFailed(value any) {
	it.BreakOff(&PanicError{value})
	it.l.escaped("Renew of a Send to", it.pid.Id, value)
}
