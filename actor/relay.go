package actor

import "github.com/asynkron/protoactor-go/actor"

// Relay is how an OnLoop actor that stands between connections and their user tells that user
// things: in one FIFO, events and received messages alike, as an identifier tells its owner.
// Sender is the actor that made the Relay. Its methods are called in that actor's Receive.
type Relay struct {
	l    *loop
	self *actor.PID
	to   owner
}

// Tell sends msg, behind everything that was told before.
func (r *Relay) Tell(msg any) {
	r.to.send(r.l, &actor.MessageEnvelope{Message: msg, Sender: r.self})
}

// HandOn passes on the message that is being received, without a copy. It is the other actor's as
// it was the caller's: until that one's Receive returns, or until Release after Retain; only then
// does the peer get its credit back.
func (r *Relay) HandOn(m *Received) {
	if r.to.box == nil {
		r.Tell(m.Clone())
		return
	}
	m.keep()
	env := &m.env
	if m.refs.Load() > 2 { // others have it, in its envelope
		env = new(actor.MessageEnvelope)
	}
	r.to.hand(m, env, r.self)
}
