// Package secure is what authenticates and encrypts a connection: two handshakes, the records that
// follow them, and large messages. The bytes are in docs/security-wire.md, who is kept from what in
// docs/security.md.
//
// It is pure. Bytes and values come in, bytes, values and errors go out. It has no sockets, no
// clock, no actor and no event loop.
//
//	mode.go      Features, Refusal: what hellos and rejects say of security
//	suite.go     Suite: the AEAD, and the hash its keys come from
//	schedule.go  how one key is made from another, and how they are overwritten
//	psk.go       Keys: identities, their keys, and what is made of a key
//	noise.go     Noise NNpsk2, as its specification has it
//	binding.go   Binding: what both sides must see alike
//	pskclient.go, pskserver.go  that handshake in the private data of a request and its reply
//	tls.go       TLS: TLS 1.3 by crypto/tls, bytes in and bytes out
//	tlsframe.go  what its bytes travel in
//	tlsconfig.go the user's tls.Config, and the user's code in it
//	records.go   Sealer, Opener: every message after the handshake
//	large.go     messages that are read: sealed in segments
//	channel.go   Channel: all of that for one side of a connection
//
// # Ownership
//
// Nothing is shared and nothing is locked. Each value belongs to one goroutine at a time. What is
// sealed or opened is the caller's memory, before and after. A Keys is never changed once it is
// made, so any goroutine may use it.
//
// # Ordering
//
// Records are opened in the order in which they were sealed, all of them. Their numbers are not on
// the wire: queue pairs deliver in order, so a record that is missing, comes twice or comes in
// another place does not open.
//
// # Errors
//
// What does not open is a *TamperedError (EBADMSG), and everything after it is refused with the
// same error. A handshake that fails is a *HandshakeError (EACCES). A *LimitError (EOVERFLOW) is of
// a side that should have changed its key long ago. After any of them the connection has to end.
//
// # Goroutines
//
// A TLS has goroutines of crypto/tls and one for each call of the user's code. They end with its
// context and Close, but for code of the user's that does not return.
//
// # Limitations
//
// Keys are overwritten where they are bytes of ours, but for those of a Keys and of a Credential,
// which have them for as long as they live. Copies inside the standard library (key
// schedules, X25519's private key, TLS's secrets) stay until the garbage collector reuses their
// memory. Without AES instructions Go's AES takes a time that depends on the key, so such a machine
// should ask for ChaCha20-Poly1305. Of a tls.Config, a ClientSessionCache is not used: sessions are
// not resumed. Lengths and times are visible to everybody on the path.
package secure
