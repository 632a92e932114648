package mailbox

import (
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
)

// The watchdog names the actor that has its loop, and not the device that has brought the message.
// Where the loop itself runs an actor's mailbox it is named already.

// beginInvocation records that m's actor occupies its loop, possibly in the middle of another one's
// message. Off the loops there is nothing to record.
func (m *Mailbox) beginInvocation() {
	if l := m.Loop(); l != nil {
		m.outer, l.inner = l.inner, &m.self
	}
}

// endInvocation records that m's actor no longer occupies its loop. A device that goes on is not
// named again: that would cost as much for each message.
func (m *Mailbox) endInvocation() {
	if l := m.Loop(); l != nil {
		if m.outer != nil {
			l.el.Blame(m.outer)
		}
		l.inner, m.outer = m.outer, nil
	}
}

// noteMessage records the message for LoopName. It does so only where stalls are reported: it is a
// few nanoseconds for each message.
func (m *Mailbox) noteMessage(msg any) {
	if m.at == nil {
		return
	}
	msg = actor.UnwrapEnvelopeMessage(msg)
	if m.cfg.Carried != nil {
		msg = m.cfg.Carried(msg)
	}
	m.at.Store(reflect.TypeOf(msg))
}

// LoopName names the actor in the loop's reports of stalls, and the message that it is at.
func (m *Mailbox) LoopName() string {
	name := "actor"
	if at, ok := m.invoker.(Place); ok {
		name += " " + at.Self().Id
	}
	if m.at != nil {
		if t, ok := m.at.Load().(reflect.Type); ok {
			name += " at " + t.String()
		}
	}
	return name
}
