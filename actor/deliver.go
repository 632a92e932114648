package actor

import (
	"runtime/debug"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// What an identifier is to its connection. BreakOff is with the other ends.
var _ datapath.Identifier = (*ident)(nil)

func (it *ident) Deliver(in *datapath.Inbound) {
	m := in.Of.(*Received)
	m.EventBase, m.Data, m.Since, m.from = it.base(), in.Data, in.Since, it
	m.HasImm, m.Imm, m.Written = in.HasImm, in.Imm, int(in.Written)
	if o := it.rt.cfg.Observer; o != nil {
		o.Event(it.pid, m)
	}
	m.begin()
	if it.owner.receive(m, it.pid) {
		return
	}
	// The owner has a mailbox that does not say when it is finished, or there is none: it gets
	// a copy.
	if it.owner.pid != nil {
		it.notify(m.Clone())
	}
	_ = m.done(it.l.exec) // its only reference
}

func (it *ident) Idle() bool { return nothingWaits(it.owner.box) && nothingWaits(it.onward) }

func nothingWaits(b *mailbox.Mailbox) bool { return b == nil || b.UserMessageCount() == 0 }

func (it *ident) Sent(s *datapath.Outgoing) {
	it.reply(s.Of.(*Send).sender, &Sent{it.base(), s.Len()})
}

func (it *ident) SendFailed(s *datapath.Outgoing, err error) {
	ev := &SendFailed{FailureBase: it.failure(nil, "send", err), Bytes: s.Len(), Sends: 1}
	ev.History = nil // a thousand of them say the same
	it.reply(s.Of.(*Send).sender, ev)
	s.Recycle()
}

func (it *ident) SendRefused(s *datapath.Outgoing, kind, err error) {
	it.refuseSends(s.Of.(*Send).sender, 1, s.Len(), kind, err)
}

func (it *ident) Writable() { it.notify(&Writable{it.base()}) }

func (it *ident) Counted() {
	it.rt.cfg.Observer.Credit(it.pid, it.id.Handle(), it.conn.Counts())
}

func (it *ident) Drained() { it.box.PostUserMessage(&drained{}) }

func (it *ident) GoodbyeLeft() { it.box.PostUserMessage(&goodbyeLeft{}) }

func (it *ident) RenewFailed(value any) {
	if value == nil {
		value = mailbox.ErrGoexit
	}
	it.l.failed("Renew of a Send to " + it.pid.Id)
	it.BreakOff(&PanicError{value})
	it.rt.sys.EventStream.Publish(&Panicked{"Renew of a Send to", it.pid.Id, value, debug.Stack()})
}
