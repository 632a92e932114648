package slots

import (
	"bytes"
	"encoding/binary"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// tag begins the private data of a request and of its reply, followed by the version. It
// distinguishes this protocol from others over RDMA.
const tag = "slots"

// version is this package's protocol version. The lower one of the two sides counts. There is none
// below 1.
const version = 1

// greetingData returns this side's private data.
func greetingData() []byte { return append([]byte(tag), version) }

// checkGreeting returns the error in the peer's private data; "": none. It ignores the bytes after
// the version, which belong to later versions.
func checkGreeting(b []byte) (wrong string) {
	switch {
	case !bytes.HasPrefix(b, []byte(tag)) || len(b) == len(tag):
		return fmt.Sprintf("want slots, %s/%d", tag, version)
	case b[len(tag)] == 0:
		return fmt.Sprintf("%s/0: want %s/%d", tag, tag, version)
	}
	return ""
}

// The messages' first byte.
const (
	msgRing     = 1 // the sender's ring, once and first: see ring
	msgFilled   = 2 // the receiver's slots that were written: uint16 and uint32 for each
	msgReleased = 3 // the receiver's slots that it may write again: uint16 for each
	msgEnd      = 4 // nothing more will be written
)

const (
	ringLen     = 1 + 2 + 4 + rdma.RemoteKeyLen
	filledLen   = 2 + 4
	releasedLen = 2
)

// ring describes the slots that a side's peer writes. They are contiguous.
type ring struct {
	slots int
	size  int // the slot's size in bytes
	key   rdma.RemoteKey
}

// encodeMessage encodes the ring as a message.
func (r *ring) encodeMessage() (*rdma.Send, error) {
	b := append(make([]byte, 0, ringLen), msgRing)
	b = binary.BigEndian.AppendUint16(b, uint16(r.slots))
	b = binary.BigEndian.AppendUint32(b, uint32(r.size))
	b, err := r.key.AppendBinary(b)
	return rdma.NewSend(b), err
}

// parseRing parses the bytes after the first of a msgRing.
func parseRing(b []byte) (r ring, err error) {
	if len(b) != ringLen-1 {
		return r, violationError("a ring's description of %d bytes, want %d", len(b), ringLen-1)
	}
	r.slots, r.size = int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint32(b[2:]))
	if err := r.key.UnmarshalBinary(b[6:]); err != nil {
		return r, violationError("a ring's key: %v", err)
	}
	switch {
	case r.slots == 0 || r.size <= 0 || r.size > maxBytes:
		return r, violationError("a ring of %d slots of %d bytes", r.slots, r.size)
	case r.key.Rights&rdma.RemoteWrite == 0 || uint64(r.slots)*uint64(r.size) > uint64(r.key.Length):
		return r, violationError("a ring of %d slots of %d bytes in %v", r.slots, r.size, r.key)
	}
	return r, nil
}

// written is a slot with bytes in it.
type written struct {
	slot int
	n    int // bytes
}

// putFilled makes the message about slots that were written.
func putFilled(all []written) *rdma.Send {
	s := rdma.NewSendBuffer(1 + len(all)*filledLen)
	b := append(s.Bytes()[:0], msgFilled)
	for _, w := range all {
		b = binary.BigEndian.AppendUint16(b, uint16(w.slot))
		b = binary.BigEndian.AppendUint32(b, uint32(w.n))
	}
	return s
}

// eachFilled parses the bytes after the first of a msgFilled.
func eachFilled(b []byte, take func(written) error) error {
	if len(b) == 0 || len(b)%filledLen != 0 {
		return violationError("%d bytes about slots that are filled", len(b))
	}
	for ; len(b) > 0; b = b[filledLen:] {
		if err := take(written{int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint32(b[2:]))}); err != nil {
			return err
		}
	}
	return nil
}

// putReleased makes the message about slots that may be written again.
func putReleased(all []uint16) *rdma.Send {
	s := rdma.NewSendBuffer(1 + len(all)*releasedLen)
	b := append(s.Bytes()[:0], msgReleased)
	for _, slot := range all {
		b = binary.BigEndian.AppendUint16(b, slot)
	}
	return s
}

// eachReleased parses the bytes after the first of a msgReleased.
func eachReleased(b []byte, take func(slot int) error) error {
	if len(b) == 0 || len(b)%releasedLen != 0 {
		return violationError("%d bytes about slots that are released", len(b))
	}
	for ; len(b) > 0; b = b[releasedLen:] {
		if err := take(int(binary.BigEndian.Uint16(b))); err != nil {
			return err
		}
	}
	return nil
}
