package actor

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// headerLen is the length of the header before every message (docs/wire.md).
const headerLen = 8

// The types of messages.
const (
	typeData   = 1
	typeCredit = 2
)

// flagAckNow asks for a credit update as soon as everything received has been consumed.
const flagAckNow = 1

// header is what stands before every message between peers of ours: type u8, flags u8, 0 u16, consumed u32, in network order.
type header struct {
	typ, flags uint8
	consumed   uint32 // data messages consumed since the connection began, modulo 2^32
}

func (h header) put(b []byte) {
	b[0], b[1], b[2], b[3] = h.typ, h.flags, 0, 0
	binary.BigEndian.PutUint32(b[4:], h.consumed)
}

// parseHeader takes the header off a message.
func parseHeader(b []byte) (h header, err error) {
	if len(b) < headerLen {
		return h, &ProtocolError{fmt.Sprintf("a message of %d bytes has no room for the header of %d", len(b), headerLen)}
	}
	h = header{b[0], b[1], binary.BigEndian.Uint32(b[4:])}
	switch {
	case h.typ != typeData && h.typ != typeCredit:
		return h, &ProtocolError{fmt.Sprintf("unknown message type %d", h.typ)}
	case h.flags&^flagAckNow != 0:
		return h, &ProtocolError{fmt.Sprintf("unknown flags %#x", h.flags)}
	case b[2] != 0 || b[3] != 0:
		return h, &ProtocolError{"the header's reserved bytes are not zero"}
	case h.typ == typeCredit && len(b) != headerLen:
		return h, &ProtocolError{fmt.Sprintf("a credit update of %d bytes, want %d", len(b), headerLen)}
	}
	return h, nil
}

// ProtocolError says what the peer did that docs/wire.md forbids. It ends that connection only. errors.Is: EPROTO.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "protocol error: " + e.What }

// Unwrap gives EPROTO.
func (e *ProtocolError) Unwrap() error { return unix.EPROTO }
