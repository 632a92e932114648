package secure

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/plain"
)

// TamperedError reports a message that the peer has not sealed at this place: it was changed,
// replayed, left out, reordered, cut short or taken from another connection. errors.Is: EBADMSG.
type TamperedError struct {
	What string // what did not open
}

func (e *TamperedError) Error() string {
	return e.What + " does not open: it was changed, replayed, left out or moved on its way"
}

// Unwrap gives EBADMSG.
func (e *TamperedError) Unwrap() error { return unix.EBADMSG }

// HandshakeError reports why a handshake failed. errors.Is: EACCES, and Err.
type HandshakeError struct {
	What string
	Err  error // the cause below, if there is one
}

func (e *HandshakeError) Error() string {
	if e.Err == nil {
		return "handshake: " + e.What
	}
	return "handshake: " + e.What + ": " + plain.Quote(e.Err.Error())
}

// Unwrap gives EACCES, and the cause.
func (e *HandshakeError) Unwrap() []error {
	if e.Err == nil {
		return []error{unix.EACCES}
	}
	return []error{unix.EACCES, e.Err}
}

// UnknownKeyError reports that no local key has the id that the peer names. It is the Err of a
// HandshakeError.
type UnknownKeyError struct{ ID KeyID }

func (e *UnknownKeyError) Error() string { return fmt.Sprintf("no key has the id %x", e.ID[:]) }

// LimitError reports that a key has reached its safe limit, or that it was changed too early.
// errors.Is: EOVERFLOW.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return e.What }

// Unwrap gives EOVERFLOW.
func (e *LimitError) Unwrap() error { return unix.EOVERFLOW }

// ConfigError reports an error in a key, an identity or a TLS configuration of this side.
// errors.Is: EINVAL, and Err.
type ConfigError struct {
	What string
	Err  error // the cause below, if there is one
}

func (e *ConfigError) Error() string {
	if e.Err == nil {
		return e.What
	}
	return e.What + ": " + e.Err.Error()
}

// Unwrap gives EINVAL, and the cause.
func (e *ConfigError) Unwrap() []error {
	if e.Err == nil {
		return []error{unix.EINVAL}
	}
	return []error{unix.EINVAL, e.Err}
}

func newHandshakeError(format string, args ...any) error {
	return &HandshakeError{What: fmt.Sprintf(format, args...)}
}
