package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// Identifier receives a connection's reports: the actor of its rdma_cm_id. The data path knows
// nothing else of identifiers. Loop goroutine. The connection goes on behind a call, so an
// implementation releases it in a later turn.
type Identifier interface {
	// Deliver gives the owner a message, which is the layer above's until Consumed.
	Deliver(m *Inbound)
	// Idle reports whether no message waits for the owner. Those that it was given and has not
	// consumed it is handling, or retains.
	Idle() bool
	// Sent reports that s, which was sent with notify, was taken by the device, or read by the
	// peer.
	Sent(s *Outgoing)
	// SendFailed reports that s may not arrive, and returns it to the identifier.
	SendFailed(s *Outgoing, err error)
	// SendRefused reports that s was not accepted, because of err. kind is the error that err is an
	// instance of.
	SendRefused(s *Outgoing, kind, err error)
	// Writable reports that messages are taken again after one was refused.
	Writable()
	// Counted reports that the connection's counts have changed, if the loop is Observed.
	Counted()
	// BreakOff ends the connection from this side, because of err; nil: after the peer's goodbye.
	BreakOff(err error)
	// Drained reports that the wait that Drain began is over.
	Drained()
	// GoodbyeLeft reports that the goodbye has left, or never will.
	GoodbyeLeft()
	// RenewFailed reports that a message's renew has panicked with value. The identifier breaks the
	// connection off.
	RenewFailed(value any)
}

// Handshake is what a secured connection reports to until the peer's first message has come. Loop
// goroutine.
type Handshake interface {
	// Prove opens, in place, the first message of a peer that has connected on a secured
	// connection, and returns the keys for the later ones. An error ends the connection.
	Prove(sealed []byte) (first []byte, ch *secure.Channel, err error)
	// Frame handles a frame of a connection in TLS mode before its records begin. b is valid during
	// the call.
	Frame(b []byte)
	// First reports the peer's first message on a secured connection. body is valid during the
	// call.
	First(t wire.Type, body []byte)
}
