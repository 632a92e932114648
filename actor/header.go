package actor

import (
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// headerLen is the length of the header before every message (docs/wire.md).
const headerLen = 8

// The types of messages.
const (
	typeData   = 1
	typeCredit = 2
	typeOffer  = 3 // stands for a message that is to be read
	// From version 3 on.
	typeGoodbye = 4 // the last message
	typeProbe   = 5 // wants an answer
	typeAnswer  = 6
)

// flagAckNow asks for a credit update as soon as everything received has been consumed.
const flagAckNow = 1

// header is what stands before every message between peers of ours: type u8, flags u8, pulled u16, consumed u32, in network order.
type header struct {
	typ, flags uint8
	pulled     uint16 // offers read since the connection began, modulo 2^16
	consumed   uint32 // messages consumed since the connection began, modulo 2^32
}

func (h header) put(b []byte) {
	b[0], b[1] = h.typ, h.flags
	binary.BigEndian.PutUint16(b[2:], h.pulled)
	binary.BigEndian.PutUint32(b[4:], h.consumed)
}

// control reports whether the message is about the connection: it is a header only, and takes no
// credit.
func (h header) control() bool { return h.typ != typeData && h.typ != typeOffer }

var controlNames = [...]string{typeCredit: "a credit update", typeGoodbye: "a goodbye", typeProbe: "a probe", typeAnswer: "an answer"}

// parseHeader takes the header off a message.
func parseHeader(b []byte) (h header, err error) {
	if len(b) < headerLen {
		return h, &ProtocolError{fmt.Sprintf("a message of %d bytes has no room for the header of %d", len(b), headerLen)}
	}
	h = header{b[0], b[1], binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])}
	switch {
	case h.typ < typeData || h.typ > typeAnswer:
		return h, &ProtocolError{fmt.Sprintf("unknown message type %d", h.typ)}
	case h.flags&^flagAckNow != 0:
		return h, &ProtocolError{fmt.Sprintf("unknown flags %#x", h.flags)}
	case h.control() && len(b) != headerLen:
		return h, &ProtocolError{fmt.Sprintf("%s of %d bytes, want %d", controlNames[h.typ], len(b), headerLen)}
	case h.typ == typeOffer && len(b) != headerLen+offerLen:
		return h, &ProtocolError{fmt.Sprintf("an offer of %d bytes, want %d", len(b), headerLen+offerLen)}
	}
	return h, nil
}

// offerLen is the length of what follows the header of an offer.
const offerLen = 16

// offer says where the peer may read a message: length u32, key u32, address u64, in network order.
type offer struct {
	length uint32 // bytes
	key    uint32
	addr   uint64
}

func (o offer) put(b []byte) {
	binary.BigEndian.PutUint32(b, o.length)
	binary.BigEndian.PutUint32(b[4:], o.key)
	binary.BigEndian.PutUint64(b[8:], o.addr)
}

// parseOffer takes what parseHeader has left of an offer. limit is the most bytes that we take.
func parseOffer(b []byte, limit int) (offer, error) {
	o := offer{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])}
	switch {
	case o.length == 0 || int(o.length) > limit:
		return o, &ProtocolError{fmt.Sprintf("an offer of a message of %d bytes, and we take %d", o.length, limit)}
	case uint64(o.length-1) > math.MaxUint64-o.addr:
		return o, &ProtocolError{fmt.Sprintf("an offer of %d bytes at %#x, beyond the end of the address space", o.length, o.addr)}
	}
	return o, nil
}

// ProtocolError says what the peer did that docs/wire.md forbids. It ends that connection only. errors.Is: EPROTO.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "protocol error: " + e.What }

// Unwrap gives EPROTO.
func (e *ProtocolError) Unwrap() error { return unix.EPROTO }
