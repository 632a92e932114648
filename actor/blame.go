package actor

import (
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
)

// The watchdog names the actor that has its loop, and not the device that has brought the message.
// Where the loop itself runs an actor's mailbox it is named already.

// interpose says that m's actor has its loop l, possibly in the middle of another one's message.
func (m *mailbox) interpose(l *loop) {
	m.outer, l.mail.inner = l.mail.inner, m
	l.el.Blame(&m.self)
}

// withdraw says that it has it no more. A device that goes on is not named again: that would cost
// as much for each message.
func (m *mailbox) withdraw(l *loop) {
	if m.outer != nil {
		l.el.Blame(&m.outer.self)
	}
	l.mail.inner, m.outer = m.outer, nil
}

// begin is interpose for a mailbox that its home runs; off the loops nothing is named.
func (m *mailbox) begin() {
	if l := m.loop(); l != nil {
		m.outer, l.mail.inner = l.mail.inner, m
	}
}

// end is withdraw likewise.
func (m *mailbox) end() {
	if l := m.loop(); l != nil {
		m.withdraw(l)
	}
}

// note is what LoopName says of the message. Only where stalls are reported to somebody: it is a
// few nanoseconds for each message.
func (m *mailbox) note(msg any) {
	if m.at == nil {
		return
	}
	msg = actor.UnwrapEnvelopeMessage(msg)
	if t, ok := msg.(*told); ok {
		msg = t.ev
	}
	m.at.Store(reflect.TypeOf(msg))
}

// LoopName names the actor in the loop's reports of stalls, and the message that it is at.
func (m *mailbox) LoopName() string {
	name := "actor"
	if ctx, ok := m.invoker.(local); ok {
		name += " " + ctx.Self().Id
	}
	if m.at != nil {
		if t, ok := m.at.Load().(reflect.Type); ok {
			name += " at " + t.String()
		}
	}
	return name
}
