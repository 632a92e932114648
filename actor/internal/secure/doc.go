// Package secure authenticates and encrypts a connection: two handshakes, the records that follow
// them, and large messages. docs/security-wire.md defines the bytes, docs/security.md the
// attackers.
//
// It is pure. Bytes and values come in, bytes, values and errors go out. It has no sockets, no
// clock, no actor and no event loop.
//
//	mode.go      Features, Refusal: security in hellos and rejects
//	suite.go     Suite: the AEAD, and the hash its keys come from
//	schedule.go  how one key is made from another, and how they are overwritten
//	psk.go       Keys: identities, their keys, and the values derived from a key
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
// Nothing is shared and nothing is locked. Each value belongs to one goroutine at a time. The
// sealed and opened memory is the caller's, before and after. A Keys is never changed once it is
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
// A TLS has goroutines of crypto/tls and one for each call of user code. They end with its context
// and Close, but for user code that does not return.
//
// # Limitations
//
// Keys are overwritten where this package owns their bytes, but for those of a Keys and of a
// Credential, which have them for as long as they live. Copies inside the standard library (key
// schedules, X25519's private key, TLS's secrets) stay until the garbage collector reuses their
// memory. Without AES instructions Go's AES takes a time that depends on the key, so such a
// machine should ask for ChaCha20-Poly1305. Of a tls.Config, a ClientSessionCache is not used:
// sessions are not resumed. Lengths and times are visible to everybody on the path.
package secure
