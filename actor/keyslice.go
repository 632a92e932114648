package actor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Slice returns a key for n of its bytes, from off on, with the same rights. EINVAL: they are not
// all within k, or there are none, or k is not a key.
//
// A slice is a convenience, and protects nothing. It names the same registration, so whoever has it
// can reach all of the Memory: the device checks only the registration's own bounds and rights. It
// guards against the peer's mistakes, as its side refuses an operation outside of its key. What a
// part of the peer's program must not reach is allocated separately.
func (k RemoteKey) Slice(off, n int) (RemoteKey, error) {
	if err := k.check(); err != nil {
		return RemoteKey{}, err
	}
	if off < 0 || n <= 0 || int64(off) > int64(k.Length) || int64(n) > int64(k.Length)-int64(off) {
		return RemoteKey{}, fmt.Errorf("rdma: bytes %d+%d of %v: %w", off, n, k, unix.EINVAL)
	}
	k.Addr += uint64(off)
	k.Length = uint32(n)
	return k, nil
}
