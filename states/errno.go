package states

import "strconv"

// Errno is a Linux error number. This package imports nothing, so it names those it needs itself;
// syscall.Errno(e) and unix.Errno(e) are the same number.
type Errno uint16

// The error numbers a verdict can carry.
const (
	ENOENT        Errno = 2   // the identifier is being destroyed
	ENXIO         Errno = 6   // the identifier's device is gone
	EINVAL        Errno = 22  // not in this state
	ENOSYS        Errno = 38  // not supported by the transport
	EOPNOTSUPP    Errno = 95  // not supported by the transport
	EADDRNOTAVAIL Errno = 99  // no such membership
	EISCONN       Errno = 106 // established already
)

// String returns the name as in errno(3).
func (e Errno) String() string {
	switch e {
	case 0:
		return "0"
	case ENOENT:
		return "ENOENT"
	case ENXIO:
		return "ENXIO"
	case EINVAL:
		return "EINVAL"
	case ENOSYS:
		return "ENOSYS"
	case EOPNOTSUPP:
		return "EOPNOTSUPP"
	case EADDRNOTAVAIL:
		return "EADDRNOTAVAIL"
	case EISCONN:
		return "EISCONN"
	}
	return "errno " + strconv.Itoa(int(e))
}

// MarshalText returns String's text.
func (e Errno) MarshalText() ([]byte, error) { return []byte(e.String()), nil }
