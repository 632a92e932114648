package inbox

import (
	"reflect"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// What Proto.Actor calls what may be sent to on a loop. The fields have no exported names, so their
// types are read by reflection. A version of Proto.Actor that names anything in another way has all
// its actors sent to off the loop, which a test notices.
const (
	futureType     = "*actor.futureProcess"
	mailboxType    = "*actor.defaultMailbox"
	dispatcherType = "actor.goroutineDispatcher"
)

// The queues of its mailboxes that are not bounded. The first two run nobody else's code.
var (
	plainQueues    = []string{"*actor.unboundedMailboxQueue", "*mpsc.Queue"}
	priorityQueues = []string{"*actor.priorityQueue"}
)

// here is Proto.Actor's package.
var here = reflect.TypeFor[actor.PID]().PkgPath()

// named reports whether t is the type of Proto.Actor's that has that name.
func named(t reflect.Type, name string) bool {
	base := t
	if t.Kind() == reflect.Pointer {
		base = t.Elem()
	}
	return base.PkgPath() == here && t.String() == name
}

// isFuture reports whether a process is that of a future, which never blocks who sends to it.
func (in *Inbox) isFuture(p actor.Process) bool {
	if _, ok := p.(*actor.ActorProcess); ok {
		return false
	}
	t := reflect.TypeOf(p)
	if t == in.future {
		return true
	}
	if !named(t, futureType) {
		return false
	}
	in.future = t
	return true
}

// mailboxOf is the default mailbox of an actor, as a struct; not ok: it has another.
func mailboxOf(p *actor.ActorProcess) (box reflect.Value, ok bool) {
	box = reflect.ValueOf(p).Elem().FieldByName("mailbox")
	if !box.IsValid() || box.Kind() != reflect.Interface || box.IsNil() {
		return box, false
	}
	if box = box.Elem(); !named(box.Type(), mailboxType) {
		return box, false
	}
	return box.Elem(), true
}

// hasQueue reports whether a default mailbox has one of those queues.
func hasQueue(box reflect.Value, names []string) bool {
	q := box.FieldByName("userMailbox")
	return q.IsValid() && q.Kind() == reflect.Interface && !q.IsNil() && slices.Contains(names, q.Elem().Type().String())
}

// unbounded reports whether an actor has a mailbox of Proto.Actor's that does not bound what is
// sent to it: only Touch shows what such an actor has consumed.
func unbounded(p *actor.ActorProcess) bool {
	box, ok := mailboxOf(p)
	return ok && (hasQueue(box, plainQueues) || hasQueue(box, priorityQueues))
}

// plain reports whether nobody else's code runs, and nothing blocks, when something is posted to
// an actor: its mailbox has no middleware and no priorities, and a goroutine runs it. The caller
// has posted something before.
func plain(p *actor.ActorProcess) bool {
	box, ok := mailboxOf(p)
	if !ok || !hasQueue(box, plainQueues) {
		return false
	}
	m, d := box.FieldByName("middlewares"), box.FieldByName("dispatcher")
	return m.IsValid() && m.Kind() == reflect.Slice && m.Len() == 0 &&
		d.IsValid() && d.Kind() == reflect.Interface && !d.IsNil() && named(d.Elem().Type(), dispatcherType)
}
