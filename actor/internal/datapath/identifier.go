package datapath

// Identifier is what a connection reports to: the actor of its rdma_cm_id. It is all that the data
// path knows of identifiers. Loop goroutine. The device may be in the middle of something, so what
// ends a connection goes on in a turn of its own.
type Identifier interface {
	// Deliver gives the owner a message, which is the layer above's until Consumed.
	Deliver(m *Inbound)
	// Sent says that s, whose sender wants to know, was taken by the device, or read by the peer.
	Sent(s *Outgoing)
	// SendFailed says that s will not arrive for certain, and takes it back.
	SendFailed(s *Outgoing, err error)
	// SendRefused says that s was not taken, because of err, which is of a kind.
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
	// RenewFailed says that a message's renew has not returned: it has panicked with value, or
	// with nil has called runtime.Goexit. It breaks the connection off.
	RenewFailed(value any)
}
