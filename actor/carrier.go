package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// Carrier carries a message to an OnLoop or OffLoop actor, and reports when the actor has consumed
// it. The actor receives the message that is carried, in its envelope if it has one, and nothing
// shows that it was. It is for packages of this module that send to actors on behalf of others.
type Carrier struct {
	// Message is the message that is carried, or its envelope. It is no *Received. nil: nothing is
	// received, and Consumed says that what was sent before has been consumed, system messages too.
	Message any
	// Consumed is called once for each Carry: when Receive has returned, panicked or exited, or
	// when the message was answered, because the actor has stopped or its mailbox is full. What the
	// actor has forwarded by then is not waited for. It is called on the goroutine that ran the
	// actor (for an OnLoop actor its loop's), or in Carry. It must not panic or block. The Carrier
	// may be used again then.
	Consumed func()
}

// Mailbox is the mailbox of an OnLoop or OffLoop actor. It is for packages of this module that send
// to actors on behalf of others. A Mailbox may be kept after its actor has stopped: it answers what
// comes then.
type Mailbox struct{ box *mailbox.Mailbox }

// MailboxOf returns the mailbox of a process that the ActorSystem has under the name id. Not ok: it
// is not an OnLoop or OffLoop actor, or is still being spawned. Any goroutine.
func (rt *Runtime) MailboxOf(id string, process actor.Process) (m Mailbox, ok bool) {
	b := rt.registry.FindOf(id, process)
	return Mailbox{b}, b != nil
}

// Carry sends a message to the actor. If two of one sender come to the same actor they keep their
// order, and so do they with messages that are sent to its PID. c must not be used before Consumed
// is called. Any goroutine; it never blocks.
func (m Mailbox) Carry(c *Carrier) { m.box.Carry((*mailbox.Carrier)(c)) }

// Near reports whether the actor runs on the loop of l. Any goroutine.
func (m Mailbox) Near(l Local) bool { return l.l != nil && m.box.Loop() == l.l.exec }
