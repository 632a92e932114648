package mailbox

import "github.com/rdmactor/rdmactor/actor/internal/usercode"

// callUser calls user code that is not an actor's: subscribers of events and dead letters,
// supervisors, loggers. If it panics, that is reported, and costs nothing else.
func (m *Mailbox) callUser(kind string, code func()) (ok bool) {
	return usercode.Call(code, func(value any) { m.exec.reportEscaped(kind, m.actorName(), value) })
}

// actorName returns the actor's name, as far as it is known.
func (m *Mailbox) actorName() string {
	if at, ok := m.invoker.(Place); ok {
		return at.Self().Id
	}
	return ""
}
