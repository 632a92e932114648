package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// retainedMessage is a Received in the form that mailboxes handle.
type retainedMessage Received

// Retain is called when a holder of the message sends it to the mailbox's actor.
func (r *retainedMessage) Retain() { (*Received)(r).addRef() }

// Delivered has nothing to do: a message is retained where it waits, and does not change.
func (*retainedMessage) Delivered() {}

func (r *retainedMessage) Release(l *mailbox.Loop) error { return (*Received)(r).releaseRef(l) }

// asRetained returns msg as a mailbox.Retained, if it has memory to release or must be notified of
// its delivery.
func asRetained(msg any) mailbox.Retained {
	switch m := msg.(type) {
	case *Received:
		if m != nil {
			return (*retainedMessage)(m)
		}
	case *Send: // has none. The most frequent message is not compared with an interface
	case *SendFailed:
		if m != nil {
			return (*retainedAnswer)(m)
		}
	case interface{ itself() *Received }: // a type that embeds one
		if r := m.itself(); r != nil {
			return (*retainedMessage)(r)
		}
	}
	return nil
}

// retainedAnswer is a SendFailed in the form that mailboxes handle. It has nothing to release, but
// must be notified of its delivery.
type retainedAnswer SendFailed

func (*retainedAnswer) Retain() {}

func (*retainedAnswer) Release(*mailbox.Loop) error { return nil }

// Delivered is called by the mailbox in which the answer waits, before Receive. From now on no
// refusals are added to it.
func (r *retainedAnswer) Delivered() {
	e := (*SendFailed)(r)
	p := e.piles
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in[e.pile] == e {
		delete(p.in, e.pile)
	}
}

// plain configures the mailbox of an actor of the application.
var plain = &mailbox.Config{Retained: asRetained}

// onLoop returns the option OnLoop for one certain loop.
func onLoop(l *loop) actor.PropsOption {
	return mailbox.Option(func() mailbox.Executor { return l.exec }, plain)
}

// itself returns the message, also of a type that embeds it.
func (m *Received) itself() *Received { return m }
