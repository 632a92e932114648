package mailbox

import "github.com/asynkron/protoactor-go/actor"

// Carrier carries a message to an actor, and reports when the actor has consumed it. The actor
// receives the message that is carried, and nothing shows that it was.
type Carrier struct {
	// Message is the message that is carried, or its envelope. It is not Retained itself. nil:
	// nothing is received, and Consumed reports that all earlier messages have been consumed.
	Message any
	// Consumed is called once: when Receive has returned, panicked or exited, or when the message
	// was answered. It does not wait for messages that the actor has forwarded by then. The
	// goroutine is the one that ran the actor, or Carry's if the mailbox had no room. It must not
	// panic or block.
	Consumed func()
}

// Carry queues a message in the data lane, as PostUserMessage does. c must not be used before
// Consumed is called. Any goroutine; it never blocks.
func (m *Mailbox) Carry(c *Carrier) {
	if c.Message == nil {
		m.PostData(c)
		return
	}
	switch bare := actor.UnwrapEnvelopeMessage(c.Message).(type) {
	case actor.MessageBatch:
		m.postElements(bare)
	case *actor.PoisonPill:
		c.Message = m.poisonPill(c.Message)
	}
	if !m.admitData(c.Message) {
		c.Consumed()
		return
	}
	m.queues[Data].push(c)
	m.wakeConsumer()
}

// Retain has nothing to do: the sender of a carrier passes its ownership on.
func (*Carrier) Retain() {}

// Delivered has nothing to do: a message does not change where it waits.
func (*Carrier) Delivered() {}

// Release reports that the message was consumed.
func (c *Carrier) Release(*Loop) error {
	c.Consumed()
	return nil
}

// unpackMessage returns a queued message as the actor receives it, and its reference or nil.
func (m *Mailbox) unpackMessage(msg any) (any, Retained) {
	if c, ok := msg.(*Carrier); ok {
		return c.Message, c
	}
	return msg, m.retainedIn(msg)
}
