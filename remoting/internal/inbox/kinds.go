package inbox

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// kinds describes Proto.Actor's mailboxes: which of them are not bounded, and which may be sent to
// on a loop. Their types and fields are not exported. They are found by the types of values that
// Proto.Actor makes, not by names, and read by reflection.
//
// Without that knowledge every actor is sent to off the loop and touched: the number of waiting
// messages stays bounded.
type kinds struct {
	missing     string       // the first part that was not found; "": none
	mailbox     int          // the field of an actor.ActorProcess
	box         reflect.Type // of a default mailbox, a struct with these fields
	queue       int
	middlewares int
	dispatcher  int
	plain       []reflect.Type // queues that are not bounded, and run no foreign code
	priority    []reflect.Type // others that are not bounded
	goroutine   reflect.Type   // the default dispatcher
}

// protoActor describes this version of Proto.Actor.
var protoActor = kindsOf(reflect.TypeFor[actor.ActorProcess](),
	[]actor.Mailbox{actor.Unbounded()(), actor.UnboundedLockfree()()},
	[]actor.Mailbox{actor.UnboundedPriority()(), actor.UnboundedPriorityMpsc()()})

// Missing returns the part that this version of Proto.Actor lacks for sending to its default
// mailboxes on a loop; "": none.
func Missing() string { return protoActor.missing }

// kindsOf finds the fields of a process, and of mailboxes with plain queues and with others.
func kindsOf(process reflect.Type, plain, priority []actor.Mailbox) *kinds {
	k := &kinds{goroutine: reflect.TypeOf(actor.NewDefaultDispatcher(1))}
	k.mailbox = k.onlyField(process, reflect.TypeFor[actor.Mailbox]())
	if box := reflect.TypeOf(plain[0]); box.Kind() == reflect.Pointer && box.Elem().Kind() == reflect.Struct {
		k.box = box.Elem()
	} else {
		k.missing = fmt.Sprintf("%v is no pointer to a struct", box)
		return k
	}
	k.middlewares = k.onlyField(k.box, reflect.TypeFor[[]actor.MailboxMiddleware]())
	k.dispatcher = k.onlyField(k.box, reflect.TypeFor[actor.Dispatcher]())
	k.queue = -1
	for i := range k.box.NumField() { // in a new mailbox no other interface has a value
		if f := reflect.ValueOf(plain[0]).Elem().Field(i); f.Kind() == reflect.Interface && !f.IsNil() {
			k.queue = i
		}
	}
	if k.queue < 0 {
		k.missing = fmt.Sprintf("%v has no queue", k.box)
	}
	if k.missing == "" {
		k.plain, k.priority = k.queuesOf(plain), k.queuesOf(priority)
	}
	return k
}

// onlyField returns the only field of a struct that has a type.
func (k *kinds) onlyField(in, of reflect.Type) int {
	at := -1
	for i := range in.NumField() {
		if in.Field(i).Type == of {
			if at >= 0 {
				k.missing = fmt.Sprintf("%v has more than one field of type %v", in, of)
			}
			at = i
		}
	}
	if at < 0 {
		k.missing = fmt.Sprintf("%v has no field of type %v", in, of)
	}
	return at
}

func (k *kinds) queuesOf(boxes []actor.Mailbox) (types []reflect.Type) {
	for _, b := range boxes {
		v := reflect.ValueOf(b)
		if v.Type() != reflect.PointerTo(k.box) {
			k.missing = fmt.Sprintf("%v is no %v", v.Type(), k.box)
			return nil
		}
		types = append(types, v.Elem().Field(k.queue).Elem().Type())
	}
	return types
}

// mailboxOf returns the mailbox of an actor; nil: unknown.
func (k *kinds) mailboxOf(p *actor.ActorProcess) actor.Mailbox {
	if k.missing != "" {
		return nil
	}
	return *(*actor.Mailbox)(reflect.ValueOf(p).Elem().Field(k.mailbox).Addr().UnsafePointer())
}

// mailboxStruct returns a default mailbox as a struct.
func (k *kinds) mailboxStruct(b actor.Mailbox) (box reflect.Value, ok bool) {
	v := reflect.ValueOf(b)
	if k.missing != "" || b == nil || v.Type() != reflect.PointerTo(k.box) {
		return v, false
	}
	return v.Elem(), true
}

// isDefault reports whether an actor has a default mailbox, or that is not known.
func (k *kinds) isDefault(p *actor.ActorProcess) bool {
	_, ok := k.mailboxStruct(k.mailboxOf(p))
	return ok || k.missing != ""
}

func (k *kinds) hasQueue(box reflect.Value, types []reflect.Type) bool {
	q := box.Field(k.queue)
	return !q.IsNil() && slices.Contains(types, q.Elem().Type())
}

// needsTouch reports whether only Touch shows what an actor has consumed: its mailbox is an
// unbounded one of Proto.Actor's, or unknown.
func (k *kinds) needsTouch(p *actor.ActorProcess) bool {
	if k.missing != "" {
		return true
	}
	box, ok := k.mailboxStruct(k.mailboxOf(p))
	return ok && (k.hasQueue(box, k.plain) || k.hasQueue(box, k.priority))
}

// isDirect reports whether posting to an actor runs no foreign code and never blocks: its mailbox
// has no middleware and no priorities, and a goroutine runs it. The caller has posted something
// before.
func (k *kinds) isDirect(p *actor.ActorProcess) bool {
	box, ok := k.mailboxStruct(k.mailboxOf(p))
	if !ok || !k.hasQueue(box, k.plain) {
		return false
	}
	d := box.Field(k.dispatcher)
	return box.Field(k.middlewares).Len() == 0 && !d.IsNil() && d.Elem().Type() == k.goroutine
}

// futureType is what Proto.Actor calls the process of a future. One with another name is sent to
// off the loop.
const futureType = "*actor.futureProcess"

// here is Proto.Actor's package.
var here = reflect.TypeFor[actor.PID]().PkgPath()

// isFuture reports whether a process is that of a future, to which a send never blocks.
func (in *Inbox) isFuture(p actor.Process) bool {
	if _, ok := p.(*actor.ActorProcess); ok {
		return false
	}
	t := reflect.TypeOf(p)
	if t == in.future {
		return true
	}
	if t.Kind() != reflect.Pointer || t.Elem().PkgPath() != here || t.String() != futureType {
		return false
	}
	in.future = t
	return true
}
