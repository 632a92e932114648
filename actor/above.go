package actor

import (
	"runtime/debug"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// above is an identifier as its connection sees it.
type above ident

func (a *above) Deliver(in *inbound) {
	it, m := (*ident)(a), in.of.(*Received)
	m.EventBase, m.Data, m.Since, m.from = it.base(), in.data, in.since, it
	if o := it.rt.cfg.observer; o != nil {
		o.Event(it.pid, m)
	}
	m.hold()
	if it.owner.receive(it, m) {
		return
	}
	// The owner has a mailbox that does not say when it is finished, or there is none: it gets a copy.
	if it.owner.pid != nil {
		it.tell(m.Clone())
	}
	_ = m.done(it.l.exec) // its only hold
}

func (a *above) Sent(s *outgoing) {
	it := (*ident)(a)
	it.reply(s.of.(*Send).sender, &Sent{it.base(), s.len()})
}

func (a *above) SendFailed(s *outgoing, err error) { (*ident)(a).sendFailed(s.of.(*Send), err) }

func (a *above) SendRefused(s *outgoing, kind, err error) {
	(*ident)(a).turnDown(s.of.(*Send).sender, 1, s.len(), kind, err)
}

func (a *above) Writable() {
	it := (*ident)(a)
	it.tell(&Writable{it.base()})
}

func (a *above) Counted() {
	a.rt.cfg.observer.Credit(a.pid, a.id.Handle(), Credits(a.conn.counts()))
}

func (a *above) BreakOff(err error) { (*ident)(a).breakOff(err) }

func (a *above) Drained() { a.box.PostUserMessage(&drained{}) }

func (a *above) GoodbyeLeft() { a.box.PostUserMessage(&parted{}) }

func (a *above) RenewFailed(value any) {
	if value == nil {
		value = mailbox.ErrGoexit
	}
	a.BreakOff(&PanicError{value})
	a.rt.sys.EventStream.Publish(&Panicked{"Renew of a Send to", a.pid.Id, value, debug.Stack()})
}
