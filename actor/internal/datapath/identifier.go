package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// Identifier is what a connection reports to: the actor of its rdma_cm_id. It is all that the data
// path knows of identifiers. Loop goroutine. The connection goes on behind a call, so an
// implementation releases it in a later turn.
type Identifier interface {
	// Deliver gives the owner a message, which is the layer above's until Consumed.
	Deliver(m *Inbound)
	// Idle reports whether no message waits for the owner: what it was given and is not Consumed it
	// has in its hands, or retains.
	Idle() bool
	// Sent says that s, whose sender wants to know, was taken by the device, or read by the peer.
	Sent(s *Outgoing)
	// SendFailed says that it is not certain that s arrives. The identifier takes s back.
	SendFailed(s *Outgoing, err error)
	// SendRefused says that s was not accepted, because of err. kind is the error that err is an
	// instance of.
	SendRefused(s *Outgoing, kind, err error)
	// Writable says that messages are taken again after one was refused.
	Writable()
	// Counted says that the connection's counts have changed. Called where the loop is Observed.
	Counted()
	// BreakOff ends the connection from this side, because of err; nil: the peer has said goodbye.
	BreakOff(err error)
	// Drained says that what Drain has waited for has come.
	Drained()
	// GoodbyeLeft says that the goodbye has left, or never will.
	GoodbyeLeft()
	// RenewFailed says that a message's renew has panicked with value, or, if that is nil, has
	// called runtime.Goexit. The identifier breaks the connection off.
	RenewFailed(value any)
}

// Handshake is what a secured connection reports to until the peer's first message has come. Loop
// goroutine.
type Handshake interface {
	// Prove opens, in place, what a peer that has connected sends first, and returns the keys for
	// what follows. An error ends the connection.
	Prove(sealed []byte) (first []byte, ch *secure.Channel, err error)
	// Frame takes what comes in TLS mode before the records begin. b is valid during the call.
	Frame(b []byte)
	// First says that the peer's first message has come. body is valid during the call.
	First(t wire.Type, body []byte)
}
