package actor

import (
	"crypto/tls"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/internal/enum"
)

// HandshakeFailure is why a handshake of a secured connection has failed.
type HandshakeFailure uint8

// The reasons.
const (
	FailedOther         HandshakeFailure = iota
	FailedUnknownKey                     // the listener has none of that id
	FailedMode                           // they want different modes or suites
	FailedTampered                       // changed, or of nobody who has the key
	FailedTimedOut                       // one side has not gone on
	FailedCrowded                        // too many at once (Limits.Handshakes)
	FailedCertificate                    // one side does not take the other's
	FailedNotAuthorized                  // by Security.Authorize or IDConfig.Route
	FailedLost                           // there was no connection, or it has ended meanwhile
	NumHandshakeFailures
)

var handshakeFailures = [...]string{
	"other", "unknown key", "mode mismatch", "tampered", "timed out", "crowded", "certificate", "not authorized", "lost",
}

// String is the reason in a few words.
func (f HandshakeFailure) String() string { return enum.At(handshakeFailures[:], f, "failure %d") }

// MarshalText is String's text.
func (f HandshakeFailure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Handshakes counts handshakes. Those that were begun, and have neither completed nor failed, are
// under way.
type Handshakes struct {
	Begun uint64
	// Completed: the peer is authenticated. Its application, or this one, may still reject.
	Completed uint64
	Failed    [NumHandshakeFailures]uint64
}

// AllFailed is the sum of Failed.
func (h *Handshakes) AllFailed() (n uint64) {
	for _, f := range h.Failed {
		n += f
	}
	return n
}

// SecurityTotals is what has become of secured connections. There is no count of records: each
// message is one, and Traffic counts these.
type SecurityTotals struct {
	Dialled  Handshakes // that this side has begun
	Answered Handshakes // of peers. A request for another mode is one, also where there is none
	Secured  int        // connections that are secured now
	// KeyUpdates is how often this side has changed its key within a connection, and PeerKeyUpdates
	// how often peers have.
	KeyUpdates, PeerKeyUpdates uint64
	// Tampered connections have ended because a message did not open (TamperedError).
	Tampered uint64
	// Overused connections have ended because a key of this side was used for as much as is safe.
	Overused uint64
}

// handshakeNotes are what the flight recorder says of failures. Its texts are constants.
var handshakeNotes = [...]string{
	"failed: other", "failed: unknown key", "failed: mode mismatch", "failed: tampered", "failed: timed out",
	"failed: crowded", "failed: certificate", "failed: not authorized", "failed: lost",
}

// failureOf is the reason in an error.
func failureOf(err error) HandshakeFailure {
	var (
		key      *secure.UnknownKeyError
		tampered *TamperedError
		peer     wire.Refusal
		alert    tls.AlertError
	)
	switch {
	case errors.As(err, &key):
		return FailedUnknownKey
	case errors.As(err, &peer):
		return failureFrom(peer)
	case errors.As(err, &alert) && slices.Contains(certificateAlerts, alert):
		return FailedCertificate
	case errors.As(err, &tampered):
		return FailedTampered
	case errors.Is(err, unix.ETIMEDOUT):
		return FailedTimedOut
	case slices.ContainsFunc(lostErrnos, func(e unix.Errno) bool { return errors.Is(err, e) }):
		return FailedLost
	}
	return FailedOther
}

// certificateAlerts are those about a certificate that was bad, unsupported, revoked, expired,
// unknown or missing, or of an unknown authority.
var certificateAlerts = []tls.AlertError{42, 43, 44, 45, 46, 48, 116}

var lostErrnos = []unix.Errno{unix.ECONNRESET, unix.ECONNREFUSED, unix.EPIPE, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ECONNABORTED}

// failureFrom is what the byte of a reject means.
func failureFrom(r wire.Refusal) HandshakeFailure {
	switch r {
	case wire.RefusedKey:
		return FailedUnknownKey
	case wire.RefusedMode:
		return FailedMode
	case wire.RefusedHandshakes:
		return FailedCrowded
	}
	return FailedOther
}
