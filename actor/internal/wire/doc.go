// Package wire is what package actor puts on the wire: the hello of a connection, the header before
// each message, offers of large messages, and the session of two sides that follows from them. The
// bytes and the rules are in docs/wire.md; this is where they are decided.
//
// It is pure. Bytes and values come in, bytes, values and errors go out. It does no I/O, reads no
// clock, and knows no device, no event loop and no actor, so every rule is a plain test.
//
//	hello.go    Hello: what each side says of itself in its private data
//	header.go   Header, Type: what stands before every message
//	offer.go    Offer: where the receiver may read a large message
//	session.go  Session: credits, offers, probes and the goodbye, counted
//
// # Using a Session
//
// The caller has the order of events: it calls Take for each header that comes, in order, and Sent
// for each that the device has taken, in order. Between them it asks Next what is to be said
// without a message, until there is nothing, and Window whether a message may go.
//
// # Ownership
//
// Nothing is shared and nothing is locked. A Session belongs to one goroutine at a time. What
// ParseHello returns as the user's data is part of the bytes it was given.
//
// # Errors
//
// What the peer did wrong is a *ProtocolError (EPROTO), and the Session is of no use afterwards:
// its connection ends. Private data without a hello is no error: it is a foreign peer's.
//
// # Limitations
//
// It does not know what the memory of an offer is, when a peer is silent for too long, or how a
// connection ends.
package wire
