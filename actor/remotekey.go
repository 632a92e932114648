package actor

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// RemoteKey names memory that a peer has granted (ours; its parts are struct ibv_mr's). Read,
// Write, FetchAdd and CompareSwap use it. The granting side sends it to its peer, in a message or
// in private data: see MarshalBinary. It is no secret, because only the peer to which it was
// granted can use it. On a network where another machine can speak for that peer, nothing else is
// safe either.
type RemoteKey struct {
	Addr   uint64 // of the first byte; opaque
	RKey   uint32
	Length uint32 // bytes
	Rights Access // RemoteRead, RemoteWrite, RemoteAtomic: at least one
}

// RemoteKeyLen is the length of a RemoteKey's binary form.
const RemoteKeyLen = 20

const remoteKeyVersion = 1

// remoteRights are all rights that a peer can have.
const remoteRights = RemoteRead | RemoteWrite | RemoteAtomic

// AppendBinary appends MarshalBinary's form to b.
func (k RemoteKey) AppendBinary(b []byte) ([]byte, error) {
	if err := k.check(); err != nil {
		return b, err
	}
	b = append(b, remoteKeyVersion, byte(k.Rights), 0, 0)
	b = binary.BigEndian.AppendUint32(b, k.RKey)
	b = binary.BigEndian.AppendUint64(b, k.Addr)
	return binary.BigEndian.AppendUint32(b, k.Length), nil
}

// MarshalBinary returns the key's form for the wire. EINVAL for a key that Grant did not make. The
// form has RemoteKeyLen bytes; numbers are big-endian:
//
//	offset  size
//	0       1     version: 1
//	1       1     rights: bit 1 RemoteWrite, bit 2 RemoteRead, bit 3 RemoteAtomic; at least one
//	2       2     0
//	4       4     RKey: the rkey, on iWARP the STag
//	8       8     Addr
//	16      4     Length: not 0, and the end is not behind the last address
//
// UnmarshalBinary refuses anything else.
func (k RemoteKey) MarshalBinary() ([]byte, error) {
	return k.AppendBinary(make([]byte, 0, RemoteKeyLen))
}

// UnmarshalBinary parses MarshalBinary's form. EINVAL: the length or the version is wrong, or it is
// not a key. Only the peer's device knows whether the key names memory of the peer.
func (k *RemoteKey) UnmarshalBinary(b []byte) error {
	switch {
	case len(b) != RemoteKeyLen:
		return fmt.Errorf("rdma: a remote key of %d bytes, want %d: %w", len(b), RemoteKeyLen, unix.EINVAL)
	case b[0] != remoteKeyVersion:
		return fmt.Errorf("rdma: a remote key of version %d, want %d: %w", b[0], remoteKeyVersion, unix.EINVAL)
	case b[2] != 0 || b[3] != 0:
		return fmt.Errorf("rdma: a remote key with reserved bytes %#x: %w", b[2:4], unix.EINVAL)
	}
	n := RemoteKey{
		Rights: Access(b[1]), RKey: binary.BigEndian.Uint32(b[4:]), Addr: binary.BigEndian.Uint64(b[8:]), Length: binary.BigEndian.Uint32(b[16:]),
	}
	if err := n.check(); err != nil {
		return err
	}
	*k = n
	return nil
}

// check returns an error if k cannot be a key.
func (k RemoteKey) check() error {
	switch {
	case k.Rights == 0 || k.Rights&^remoteRights != 0:
		return fmt.Errorf("rdma: a remote key with the rights %#x: %w", uint8(k.Rights), unix.EINVAL)
	case k.Length == 0 || k.Addr > ^uint64(0)-uint64(k.Length):
		return fmt.Errorf("rdma: a remote key for %d bytes at %#x: %w", k.Length, k.Addr, unix.EINVAL)
	}
	return nil
}

// String returns the length and the rights, without the key.
func (k RemoteKey) String() string {
	rights := ""
	if k.Rights&RemoteRead != 0 {
		rights += "r"
	}
	if k.Rights&RemoteWrite != 0 {
		rights += "w"
	}
	if k.Rights&RemoteAtomic != 0 {
		rights += "a"
	}
	return fmt.Sprintf("remote memory of %d bytes (%s)", k.Length, rights)
}

// Slice returns a key for n of its bytes, from off on, with the same rights. EINVAL: they are not
// all within k, or there are none, or k is not a key.
//
// A slice is a convenience, and protects nothing. It names the same registration, so any holder can
// reach all of the Memory: the device checks only the registration's own bounds and rights. It
// guards against the peer's mistakes, as its side refuses an operation outside of its key. Memory
// that a part of the peer's program must not reach has to be allocated separately.
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
