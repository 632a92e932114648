package slots

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrClosed: Conn.Close or Listener.Close was called.
var ErrClosed = errors.New("slots: closed")

// ErrEnded: Conn.End was called, so nothing more may be sent.
var ErrEnded = errors.New("slots: End was called")

// ProtocolError reports how the peer violated this package's protocol. It ends that connection
// only. errors.Is: EPROTO.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "slots: the peer has broken the protocol: " + e.What }

// Unwrap returns EPROTO.
func (*ProtocolError) Unwrap() error { return unix.EPROTO }

func violationError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// LostError reports that the connection has ended without the peer's End, so nothing more is sent
// or received. Err is the cause, or nil. errors.Is: ECONNRESET, and Err's own.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	if e.Err == nil {
		return "slots: the peer has ended the connection"
	}
	return "slots: the connection has ended: " + e.Err.Error()
}

// Unwrap returns ECONNRESET and Err.
func (e *LostError) Unwrap() []error {
	if e.Err == nil {
		return []error{unix.ECONNRESET}
	}
	return []error{unix.ECONNRESET, e.Err}
}
