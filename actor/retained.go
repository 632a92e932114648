package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// retainedMessage is a Received as a mailbox has it.
type retainedMessage Received

// Retain is called when somebody who has the message sends it to the mailbox's actor.
func (r *retainedMessage) Retain() { (*Received)(r).keep() }

// Delivered has nothing to do: a message is retained where it waits, and does not change.
func (*retainedMessage) Delivered() {}

func (r *retainedMessage) Release(l *mailbox.Loop) error { return (*Received)(r).done(l) }

// retained is the messages of ours that have something to give back, as mailboxes want to know
// them.
func retained(msg any) mailbox.Retained {
	switch m := msg.(type) {
	case *Received:
		return (*retainedMessage)(m)
	case *SendFailed:
		return (*retainedAnswer)(m)
	case interface{ itself() *Received }: // a type that embeds one
		if r := m.itself(); r != nil {
			return (*retainedMessage)(r)
		}
	}
	return nil
}

// retainedAnswer is a SendFailed as a mailbox has it. Nobody has to give one back.
type retainedAnswer SendFailed

func (*retainedAnswer) Retain() {}

func (*retainedAnswer) Release(*mailbox.Loop) error { return nil }

// Delivered is called by the mailbox that the answer waits in, before Receive: it does not change
// from now on.
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

// plain is the mailbox of an actor of the application.
var plain = &mailbox.Config{Retained: retained}

// onLoop is OnLoop for one certain loop.
func onLoop(l *loop) actor.PropsOption {
	return mailbox.Option(func() mailbox.Executor { return l.exec }, plain)
}

// itself is the message, also of a type that embeds it.
func (m *Received) itself() *Received { return m }
