package verbs

import "golang.org/x/sys/unix"

// ErrNotSupported is returned for an operation that the device does not have. errors.Is finds
// EOPNOTSUPP in it.
var ErrNotSupported error = unsupported{}

type unsupported struct{}

func (unsupported) Error() string { return "verbs: not supported by this device" }

func (unsupported) Is(target error) bool { return target == unix.EOPNOTSUPP }

// ErrQPState is returned by QP.PostSend if the queue pair is not connected or has ended. It
// distinguishes that from a malformed work request: both are EINVAL in ibv_post_send(3), and
// errors.Is matches it with EINVAL.
var ErrQPState error = qpState{}

type qpState struct{}

func (qpState) Error() string { return "the queue pair is not connected, or has ended" }

func (qpState) Unwrap() error { return unix.EINVAL }
