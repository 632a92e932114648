package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// Carrier carries a message to an OnLoop or OffLoop actor, and reports when the actor has consumed
// it. The actor receives the carried message, in its envelope if it has one, and cannot see that it
// was carried. It is for packages of this module that send to actors on behalf of others.
type Carrier struct {
	// Message is the carried message, or its envelope. It is no *Received. nil: nothing is
	// received, and Consumed reports that all earlier messages were consumed, including system
	// messages.
	Message any
	// Consumed is called once for each Carry: when Receive has returned, panicked or exited, or
	// when the message was answered, because the actor has stopped or its mailbox is full. It does
	// not wait for messages that the actor has forwarded by then. It is called on the goroutine
	// that ran the actor (for an OnLoop actor its loop's), or in Carry. It must not panic or block.
	// The Carrier may be used again then.
	Consumed func()
}

// Mailbox is the mailbox of an OnLoop or OffLoop actor. It is for packages of this module that send
// to actors on behalf of others. A Mailbox may be kept after its actor has stopped: it answers
// later messages.
type Mailbox struct{ box *mailbox.Mailbox }

// MailboxOf returns the mailbox of a process that the ActorSystem has under the name id. Not ok: it
// is not an OnLoop or OffLoop actor, or is still being spawned. Any goroutine may call it.
func (rt *Runtime) MailboxOf(id string, process actor.Process) (m Mailbox, ok bool) {
	b := rt.registry.FindOf(id, process)
	return Mailbox{b}, b != nil
}

// Carry sends a message to the actor. Messages of one sender to one actor keep their order, also
// among those that are sent to its PID. c must not be used before Consumed is called. Any goroutine
// may call it; it never blocks.
func (m Mailbox) Carry(c *Carrier) { m.box.Carry((*mailbox.Carrier)(c)) }
