package states

import "strconv"

// Errno is a Linux error number. This package imports nothing, so it names those it needs itself;
// syscall.Errno(e) and unix.Errno(e) are the same number.
type Errno uint16

// The error numbers a verdict can carry.
const (
	ENOENT        Errno = 2   // the identifier is being destroyed
	ENXIO         Errno = 6   // its device is gone
	EINVAL        Errno = 22  // not in this state
	ENOSYS        Errno = 38  // the transport cannot
	EOPNOTSUPP    Errno = 95  // the transport cannot
	EADDRNOTAVAIL Errno = 99  // no such membership
	EISCONN       Errno = 106 // established already
)

// String is the name as in errno(3).
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

// MarshalText is String's text.
func (e Errno) MarshalText() ([]byte, error) { return []byte(e.String()), nil }
