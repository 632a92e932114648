package mailbox

import "github.com/rdmactor/rdmactor/actor/internal/usercode"

// guard calls user code that is not an actor's: subscribers of events and dead letters,
// supervisors, loggers. If it panics, that is reported, and costs nothing else.
func (m *Mailbox) guard(kind string, code func()) (ok bool) {
	return usercode.Call(code, func(value any) { m.exec.escaped(kind, m.name(), value) })
}

// name is the actor's, as far as it is known.
func (m *Mailbox) name() string {
	if at, ok := m.invoker.(Place); ok {
		return at.Self().Id
	}
	return ""
}
