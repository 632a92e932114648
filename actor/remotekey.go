package actor

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// RemoteKey names memory that a peer has granted (ours; its parts are struct ibv_mr's). Read,
// Write, FetchAdd and CompareSwap want it. It is a value to be sent to the peer, in a message or
// in private data: see MarshalBinary. It is no secret: only the peer it was granted to can use it,
// and on a network where somebody else can speak for that peer nothing else is safe either.
type RemoteKey struct {
	Addr   uint64 // of the first byte; opaque
	RKey   uint32
	Length uint32 // bytes
	Rights Access // RemoteRead, RemoteWrite, RemoteAtomic: at least one
}

// RemoteKeyLen is the length of a RemoteKey's binary form.
const RemoteKeyLen = 20

const remoteKeyVersion = 1

// remoteRights are those that a peer can have.
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

// MarshalBinary is the key's form for the wire, RemoteKeyLen bytes (docs/wire.md). EINVAL for a
// key that Grant did not make.
func (k RemoteKey) MarshalBinary() ([]byte, error) {
	return k.AppendBinary(make([]byte, 0, RemoteKeyLen))
}

// UnmarshalBinary takes MarshalBinary's form, and nothing else: EINVAL for what is longer or
// shorter, of another version, or not a key. What it says of the peer's memory only the peer's
// device knows to be true.
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

// check says whether k can be a key.
func (k RemoteKey) check() error {
	switch {
	case k.Rights == 0 || k.Rights&^remoteRights != 0:
		return fmt.Errorf("rdma: a remote key with the rights %#x: %w", uint8(k.Rights), unix.EINVAL)
	case k.Length == 0 || k.Addr > ^uint64(0)-uint64(k.Length):
		return fmt.Errorf("rdma: a remote key for %d bytes at %#x: %w", k.Length, k.Addr, unix.EINVAL)
	}
	return nil
}

// String does not show the key.
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
