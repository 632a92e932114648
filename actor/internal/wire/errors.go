package wire

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ProtocolError reports a message of the peer that docs/wire.md forbids. It ends that connection
// only. errors.Is: EPROTO.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "protocol error: " + e.What }

// Unwrap gives EPROTO.
func (e *ProtocolError) Unwrap() error { return unix.EPROTO }

func newProtocolError(format string, args ...any) error {
	return &ProtocolError{What: fmt.Sprintf(format, args...)}
}
