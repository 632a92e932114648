package wire

import "encoding/binary"

// A side whose receives are posted beforehand may change their size. Receives are used in order,
// so it states from which one on they are larger. Before it posts smaller ones the peer has to
// know: the flag Resized of the peer's headers confirms it.

// ReceivesLen is the length, in bytes, of what follows the header of a TypeReceives.
const ReceivesLen = 8

// Receives states the size of its sender's receives: from u32, size u32, in network order.
type Receives struct {
	// The number of the first that is at least so large, modulo 2^32: the first receive of a
	// connection is 0. When they get smaller it means nothing.
	From uint32
	// Size is the largest message, in bytes, that one holds; at least 1024.
	Size uint32
}

// Put writes it to the first ReceivesLen bytes of b.
func (r Receives) Put(b []byte) {
	binary.BigEndian.PutUint32(b, r.From)
	binary.BigEndian.PutUint32(b[4:], r.Size)
}

// ParseReceives parses the bytes behind the header of a TypeReceives: ReceivesLen bytes. An error
// is a *ProtocolError.
func ParseReceives(b []byte) (Receives, error) {
	r := Receives{From: binary.BigEndian.Uint32(b), Size: binary.BigEndian.Uint32(b[4:])}
	if r.Size < kib {
		return r, newProtocolError("receives of %d bytes, at least %d is allowed", r.Size, kib)
	}
	return r, nil
}

// resizes holds the announcements of both sides about the sizes of their receives.
type resizes struct {
	own     bool // this side has sent an odd number of TypeReceives
	unknown bool // the peer has not confirmed the last
	theirs  bool // the peer has sent an odd number
	unsaid  bool // this side has not confirmed the last
}

// Resizing reports whether the peer has not confirmed the last local TypeReceives. There may be no
// other one then.
func (s *Session) Resizing() bool { return s.resizes.unknown }

// headerFlag returns the flag that headers carry.
func (r *resizes) headerFlag() uint8 {
	if r.theirs {
		return Resized
	}
	return 0
}

// takeFlag takes the peer's flag.
func (r *resizes) takeFlag(set bool) error {
	switch {
	case set == r.own:
		r.unknown = false
	case !r.unknown:
		return newProtocolError("the peer has taken in a change of receives that there was not")
	}
	return nil
}

// takeResize accounts for a TypeReceives of the peer's.
func (r *resizes) takeResize() error {
	if r.unsaid {
		return newProtocolError("a change of receives before the last was known to be taken in")
	}
	r.theirs, r.unsaid = !r.theirs, true
	return nil
}

// headerSent notes that a header has left.
func (r *resizes) headerSent(typ Type) {
	r.unsaid = false
	if typ == TypeReceives {
		r.own, r.unknown = !r.own, true
	}
}
