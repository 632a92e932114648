// Package wire encodes and decodes the messages of package rpc (docs/rpc-wire.md). A message is one
// or more frames. A frame is a header and a body. Both sides send a Hello in their private data.
// All numbers are in network order.
//
// The functions that read return the values that Put and Append functions have written. Functions
// that read accept any bytes, and never read beyond them. They return slices of their argument, but
// copies of an error's text and details. Their errors describe the fault. The functions keep no
// references, do not depend on time, and may be called on any goroutine.
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// HeaderLen is the length of a frame's header.
const HeaderLen = 16

// FrameType is the type of a frame.
type FrameType uint8

// The types of frames, and their senders. In version 1 only a client sends windows, and only a
// server items. Types from FrameEnd on belong to version 2. In version 2 only a server sends parts,
// and only a client confirms them.
const (
	FrameDeclare FrameType = iota + 1 // client: number is the method that the body names
	FrameCall                         // client: a request, or the beginning of a stream of items
	FrameCancel                       // client: the caller has given up
	FrameWindow                       // the receiver of items: arg more bytes may be sent
	FrameReply                        // server: the answer, or the end of a stream
	FrameError                        // server: the answer is an error, number is its code
	FrameItem                         // an item of a stream
	FrameDrain                        // server: no further calls
	FrameEnd                          // client: no further items
	FrameHeader                       // server: metadata that precedes items and the answer
	FramePart                         // a part of a request, a reply or an item
	FrameTaken                        // the receiver of parts: arg bytes of them were read
)

// The flags of frames.
const (
	FlagMillis   = 1 << 0 // call: arg is in milliseconds
	FlagMetadata = 1 << 1 // call: metadata stands before the request
	FlagStream   = 1 << 2 // call: the caller wants a stream of items
	FlagSends    = 1 << 3 // call: the caller sends a stream of items instead of a request
	FlagFollows  = 1 << 4 // call: the request follows in parts, and the body has its length
	FlagRefused  = 1 << 0 // error: the handler was not called
	FlagTrailer  = 1 << 1 // reply, error: metadata stands before the rest of the body
	FlagParts    = 1 << 2 // reply, item: the body continues the parts that were sent before
	// drain: requests without an answer get none, and no handler was called for them
	FlagLast = 1 << 0
	// drain: calls are taken until the client has another connection to this server
	FlagOld = 1 << 1
)

// Header is a frame's: type u8, flags u8, number u16, length of the body u32, call u32, arg u32.
type Header struct {
	Type   FrameType
	Flags  uint8
	Number uint16 // a method's, or an error's code
	Length uint32
	Call   CallID
	Arg    uint32
}

// CallID names a call on its connection: the slot that it occupies from its request to its answer,
// and which use of the slot it is.
type CallID uint32

const (
	slotBits = 16
	// MaxSlots is how many slots a CallID can name.
	MaxSlots = 1 << slotBits
)

// NewCallID names the use of a slot, which is below MaxSlots.
func NewCallID(slot int, use uint16) CallID { return CallID(use)<<slotBits | CallID(slot) }

// Slot returns the slot.
func (id CallID) Slot() int { return int(id & (MaxSlots - 1)) }

// Put writes the header to the first HeaderLen bytes of b.
func (h Header) Put(b []byte) {
	_ = b[HeaderLen-1]
	b[0], b[1] = byte(h.Type), h.Flags
	binary.BigEndian.PutUint16(b[2:], h.Number)
	binary.BigEndian.PutUint32(b[4:], h.Length)
	binary.BigEndian.PutUint32(b[8:], uint32(h.Call))
	binary.BigEndian.PutUint32(b[12:], h.Arg)
}

// PutCall changes the call in a header that Put has written.
func PutCall(b []byte, id CallID) { binary.BigEndian.PutUint32(b[8:12], uint32(id)) }

// ParseFrame takes a frame off a message.
func ParseFrame(b []byte) (h Header, body, rest []byte, err error) {
	if len(b) < HeaderLen {
		return h, nil, nil, fmt.Errorf("%d bytes have no room for a frame's header", len(b))
	}
	h = Header{
		Type: FrameType(b[0]), Flags: b[1], Number: binary.BigEndian.Uint16(b[2:]),
		Length: binary.BigEndian.Uint32(b[4:]), Call: CallID(binary.BigEndian.Uint32(b[8:])), Arg: binary.BigEndian.Uint32(b[12:]),
	}
	b = b[HeaderLen:]
	if uint64(h.Length) > uint64(len(b)) {
		return h, nil, nil, fmt.Errorf("a frame of %d bytes with %d left in its message", h.Length, len(b))
	}
	return h, b[:h.Length:h.Length], b[h.Length:], nil
}

// PutTimeout encodes a time-out: in microseconds up to 71 minutes, in milliseconds up to 49 days,
// and as none beyond. Since 0 is no time-out, the shortest is one microsecond.
func PutTimeout(d time.Duration) (arg uint32, flags uint8) {
	switch us, ms := d.Microseconds(), d.Milliseconds(); {
	case us <= math.MaxUint32:
		return uint32(max(us, 1)), 0
	case ms <= math.MaxUint32:
		return uint32(ms), FlagMillis
	}
	return 0, 0
}

// Timeout returns the time-out in a call's frame. 0: none.
func (h Header) Timeout() time.Duration {
	if h.Flags&FlagMillis != 0 {
		return time.Duration(h.Arg) * time.Millisecond
	}
	return time.Duration(h.Arg) * time.Microsecond
}

// FollowsLen is the length of the body that announces a request in parts.
const FollowsLen = 4

// AppendFollows appends the body that announces a request of n bytes in parts.
func AppendFollows(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

// ParseFollows returns the length of the request that body announces. Not ok: it is not well
// formed.
func ParseFollows(body []byte) (n int, ok bool) {
	if len(body) != FollowsLen {
		return 0, false
	}
	return int(min(binary.BigEndian.Uint32(body), math.MaxInt32)), true
}

// The longest message of an error and its details that are sent, a method's name, and how many
// methods a client may declare on a connection.
const (
	MaxMethods      = 4096
	MaxErrorText    = 4 << 10
	MaxErrorDetails = 16 << 10
	MaxMethodName   = 255
)

// AppendError appends an error's body: length of the message u16, the message, the details.
func AppendError(b []byte, text string, details []byte) []byte {
	if len(text) > MaxErrorText {
		text = text[:MaxErrorText]
	}
	if len(details) > MaxErrorDetails {
		details = nil
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	b = append(b, text...)
	return append(b, details...)
}

// ParseError takes an error's body apart; an empty body is that of an error that has only its
// code. Details that are too long to be sent are left out.
func ParseError(b []byte) (text string, details []byte, err error) {
	if len(b) == 0 {
		return "", nil, nil
	}
	if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
		return "", nil, fmt.Errorf("an error of %d bytes with a longer message", len(b))
	}
	n := int(binary.BigEndian.Uint16(b))
	text, b = string(b[2:2+n]), b[2+n:]
	if len(b) > 0 && len(b) <= MaxErrorDetails {
		details = append([]byte(nil), b...)
	}
	return text, details, nil
}
