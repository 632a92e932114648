package wire

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Refusal is the reason why a runtime, not its application, refuses a peer. It is one byte: in a
// reject (Reject; in a mode, behind the hello), or sealed in a TypeRefusal.
type Refusal byte

// The reasons. Only authenticated peers get those from RefusedConnections to RefusedMemory.
const (
	RefusedOther       Refusal = iota // or none is given
	RefusedKey                        // no key has the id
	RefusedMode                       // another mode or suite
	RefusedHandshakes                 // too many at the same time
	RefusedRate                       // too many requests of this address in this time
	RefusedLimits                     // too many requests or connections, or too little memory
	RefusedLate                       // the owner has not answered in time
	RefusedClosing                    // the runtime shuts down, or the listener ends
	RefusedFailed                     // the listener's code, or the accept, has failed
	RefusedConnections                // too many of this identity
	RefusedConnects                   // too many of this identity in this time
	RefusedMemory                     // too much for the connections of this identity
	RefusedVersion                    // the hello's version is no longer spoken
)

var refusals = [...]string{
	RefusedKey:         "no key has this id",
	RefusedMode:        "another mode or suite",
	RefusedHandshakes:  "too many handshakes at once (Limits.Handshakes there)",
	RefusedRate:        "too many requests of this address in this time (Limits.RequestRate there)",
	RefusedLimits:      "too many requests or connections, or too little memory (Limits there)",
	RefusedLate:        "the application there has not answered the request in time (IDConfig.AcceptTimeout there)",
	RefusedClosing:     "it shuts down, or no longer listens",
	RefusedFailed:      "it could not accept (its log has the cause)",
	RefusedConnections: "too many connections",
	RefusedConnects:    "too many connects in this time",
	RefusedMemory:      "too much memory for its connections",
	RefusedVersion:     "it no longer speaks our version",
}

// String returns the reason in words, for the peer's errors.
func (r Refusal) String() string {
	if int(r) < len(refusals) && refusals[r] != "" {
		return refusals[r]
	}
	return fmt.Sprintf("reason %d", byte(r))
}

// Error returns String: a Refusal may be the Err of a HandshakeError.
func (r Refusal) Error() string { return r.String() }

// Unwrap returns EAGAIN if another attempt may succeed without a change of configuration.
func (r Refusal) Unwrap() error {
	switch r {
	case RefusedHandshakes, RefusedRate, RefusedLimits, RefusedClosing, RefusedFailed:
		return unix.EAGAIN
	}
	return nil
}

// OfIdentity reports whether the peer's identity reached its limits.
func (r Refusal) OfIdentity() bool {
	return r == RefusedConnections || r == RefusedConnects || r == RefusedMemory
}

// Reject returns the private data of a reject without a mode. Credits and sizes mean nothing in a
// reject, so an impossible combination encodes the reason: the largest receives, and messages of as
// many bytes as the reason's number.
func (r Refusal) Reject() []byte {
	return Hello{Credits: 1, Eager: MaxEager, MaxMessage: int(r)}.Put(nil)
}

// Refusal returns the reason in the hello of a reject.
func (h Hello) Refusal() Refusal {
	if h.Features != 0 || h.Credits != 1 || h.Eager != MaxEager || h.MaxMessage > 255 {
		return RefusedOther
	}
	return Refusal(h.MaxMessage)
}
