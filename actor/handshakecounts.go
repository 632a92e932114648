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

// HandshakeFailure is the reason for which a handshake of a secured connection has failed.
type HandshakeFailure uint8

// The reasons.
const (
	FailedOther         HandshakeFailure = iota
	FailedUnknownKey                     // the listener has no key of that id
	FailedMode                           // the sides require different modes or suites
	FailedTampered                       // modified, or sent without the key
	FailedTimedOut                       // one side did not continue in time
	FailedCrowded                        // too many at a time (Limits.Handshakes)
	FailedCertificate                    // one side does not accept the other's
	FailedNotAuthorized                  // rejected by Security.Authorize or IDConfig.Route
	FailedLost                           // no connection was made, or it ended during the handshake
	NumHandshakeFailures
)

var handshakeFailures = [...]string{
	"other", "unknown key", "mode mismatch", "tampered", "timed out", "crowded", "certificate", "not authorized", "lost",
}

// String returns the reason in a few words.
func (f HandshakeFailure) String() string { return enum.At(handshakeFailures[:], f, "failure %d") }

// MarshalText returns String's text.
func (f HandshakeFailure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Handshakes counts handshakes. Those that have begun, and have neither completed nor failed, are
// under way.
type Handshakes struct {
	Begun uint64
	// Completed: the peer is authenticated. Its application, or this one, may still reject.
	Completed uint64
	Failed    [NumHandshakeFailures]uint64
}

// AllFailed returns the sum of Failed.
func (h *Handshakes) AllFailed() (n uint64) {
	for _, f := range h.Failed {
		n += f
	}
	return n
}

// SecurityTotals counts secured connections and their outcomes. There is no count of records: each
// message is one, and Traffic counts these.
type SecurityTotals struct {
	Dialled  Handshakes // begun by this side
	Answered Handshakes // begun by peers; includes requests that are refused for their mode
	Secured  int        // connections that are secured now
	// KeyUpdates is how often this side has changed its key within a connection, and PeerKeyUpdates
	// how often peers have.
	KeyUpdates, PeerKeyUpdates uint64
	// Tampered counts connections that have ended because a message did not open (TamperedError).
	Tampered uint64
	// Overused counts connections that have ended because a key of this side reached its limit of
	// safe use.
	Overused uint64
}

// handshakeNotes are the flight recorder's texts for failures. It keeps constant texts only.
var handshakeNotes = [...]string{
	"failed: other", "failed: unknown key", "failed: mode mismatch", "failed: tampered", "failed: timed out",
	"failed: crowded", "failed: certificate", "failed: not authorized", "failed: lost",
}

// failureOf returns the reason in an error.
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

// failureFrom translates the byte of a reject.
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
