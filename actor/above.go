package actor

import (
	"runtime/debug"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// above is an identifier as its connection sees it.
type above ident

func (a *above) Deliver(in *datapath.Inbound) {
	it, m := (*ident)(a), in.Of.(*Received)
	m.EventBase, m.Data, m.Since, m.from = it.base(), in.Data, in.Since, it
	if o := it.rt.cfg.observer; o != nil {
		o.Event(it.pid, m)
	}
	m.hold()
	if it.owner.receive(it, m) {
		return
	}
	// The owner has a mailbox that does not say when it is finished, or there is none: it gets
	// a copy.
	if it.owner.pid != nil {
		it.tell(m.Clone())
	}
	_ = m.done(it.l.exec) // its only hold
}

func (a *above) Sent(s *datapath.Outgoing) {
	it := (*ident)(a)
	it.reply(s.Of.(*Send).sender, &Sent{it.base(), s.Len()})
}

func (a *above) SendFailed(s *datapath.Outgoing, err error) {
	(*ident)(a).sendFailed(s.Of.(*Send), err)
}

func (a *above) SendRefused(s *datapath.Outgoing, kind, err error) {
	(*ident)(a).turnDown(s.Of.(*Send).sender, 1, s.Len(), kind, err)
}

func (a *above) Writable() {
	it := (*ident)(a)
	it.tell(&Writable{it.base()})
}

func (a *above) Counted() {
	a.rt.cfg.observer.Credit(a.pid, a.id.Handle(), Credits(a.conn.Counts()))
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
