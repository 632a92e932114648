package verbs

import "golang.org/x/sys/unix"

// ErrNotSupported is returned for an operation that the device does not have. errors.Is finds
// EOPNOTSUPP in it.
var ErrNotSupported error = unsupported{}

type unsupported struct{}

func (unsupported) Error() string { return "verbs: not supported by this device" }

func (unsupported) Is(target error) bool { return target == unix.EOPNOTSUPP }
