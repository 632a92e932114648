// Package wire is what package actor puts on the wire: the hello of a connection, the header before
// each message, offers of large messages, and the session of two sides that follows from them. The
// bytes and the rules are in docs/wire.md; this is where they are decided.
//
// It is pure. Bytes and values come in, bytes, values and errors go out. It does no I/O, reads no
// clock, and knows no device, no event loop and no actor, so every rule is a plain test.
//
//	hello.go    Hello: each side's parameters in its private data
//	header.go   Header, Type: what stands before every message
//	offer.go    Offer: where the receiver may read a large message
//	receives.go Receives: a change of the size of a side's receives
//	bundle.go   several messages in one Send
//	session.go  Session: credits, offers, probes and the goodbye, counted
//
// # Using a Session
//
// The caller calls Take for each header that comes, and Sent for each header that the device has
// taken, in order; of a bundle TakeBundle and SentBundle. Between them it calls Next, until that returns nothing, for what to send without
// a message, and Window for how many messages may be sent.
//
// # Ownership
//
// Nothing is shared and nothing is locked. A Session belongs to one goroutine at a time. What
// ParseHello returns as the user's data is part of the bytes it was given.
//
// # Errors
//
// A mistake of the peer's is a *ProtocolError (EPROTO). The Session must not be used afterwards:
// its connection ends. Private data without a hello is no error, but that of a foreign peer.
//
// # Limitations
//
// It does not know the memory behind an offer, when a peer is silent for too long, or how a
// connection ends.
package wire
