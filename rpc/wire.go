package rpc

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// What is on the wire is docs/rpc.md: a message is one or more frames, a frame is a header and a body. All numbers are in network order.

// headerLen is the length of a frame's header.
const headerLen = 16

// frameType says what a frame is.
type frameType uint8

const (
	frameDeclare frameType = iota + 1 // client: number is the method that the body names
	frameCall                         // client: a request
	frameCancel                       // client: the caller has gone
	frameWindow                       // client: arg more bytes of a stream may be sent
	frameReply                        // server: the answer, or the end of a stream
	frameError                        // server: the answer is an error, number is its code
	frameItem                         // server: an item of a stream
	frameDrain                        // server: no further calls
)

// The flags of frames.
const (
	flagMillis   = 1 << 0 // call: arg is in milliseconds
	flagMetadata = 1 << 1 // call: metadata stands before the request
	flagStream   = 1 << 2 // call: the caller wants a stream
	flagRefused  = 1 << 0 // error: the handler was not called
	flagLast     = 1 << 0 // drain: what was not answered will not be, and no handler was called for it
)

// header is a frame's: type u8, flags u8, number u16, length of the body u32, call u32, arg u32.
type header struct {
	typ    frameType
	flags  uint8
	number uint16 // a method's, or an error's code
	length uint32
	call   callID
	arg    uint32
}

// callID names a call on its connection: the slot that it occupies from its request to its answer, and which use of the slot it is.
type callID uint32

const (
	slotBits = 16
	maxSlots = 1 << slotBits
)

func newCallID(slot int, use uint16) callID { return callID(use)<<slotBits | callID(slot) }

func (id callID) slot() int { return int(id & (maxSlots - 1)) }

func (h header) put(b []byte) {
	_ = b[headerLen-1]
	b[0], b[1] = byte(h.typ), h.flags
	binary.BigEndian.PutUint16(b[2:], h.number)
	binary.BigEndian.PutUint32(b[4:], h.length)
	binary.BigEndian.PutUint32(b[8:], uint32(h.call))
	binary.BigEndian.PutUint32(b[12:], h.arg)
}

// parseFrame takes a frame off a message.
func parseFrame(b []byte) (h header, body, rest []byte, err error) {
	if len(b) < headerLen {
		return h, nil, nil, fmt.Errorf("%d bytes have no room for a frame's header", len(b))
	}
	h = header{
		typ: frameType(b[0]), flags: b[1], number: binary.BigEndian.Uint16(b[2:]),
		length: binary.BigEndian.Uint32(b[4:]), call: callID(binary.BigEndian.Uint32(b[8:])), arg: binary.BigEndian.Uint32(b[12:]),
	}
	b = b[headerLen:]
	if uint64(h.length) > uint64(len(b)) {
		return h, nil, nil, fmt.Errorf("a frame of %d bytes with %d left in its message", h.length, len(b))
	}
	return h, b[:h.length:h.length], b[h.length:], nil
}

// putTimeout says a time-out in arg: in microseconds up to an hour, in milliseconds up to 49 days, none beyond. Zero is none, so one
// that is not over yet is a unit at least.
func putTimeout(d time.Duration) (arg uint32, flags uint8) {
	switch us, ms := d.Microseconds(), d.Milliseconds(); {
	case us <= math.MaxUint32:
		return uint32(max(us, 1)), 0
	case ms <= math.MaxUint32:
		return uint32(ms), flagMillis
	}
	return 0, 0
}

// timeout is what a call's frame says; 0: none.
func (h header) timeout() time.Duration {
	if h.flags&flagMillis != 0 {
		return time.Duration(h.arg) * time.Millisecond
	}
	return time.Duration(h.arg) * time.Microsecond
}

const (
	helloMagic   = 0x7EDB
	helloVersion = 1
	helloLen     = 8
)

// hello is what both sides say of themselves in their private data: magic u16, version u8, 0 u8, calls u16, window u16.
type hello struct {
	version uint8
	calls   int // server: how many calls the client may have unanswered, at least 1. Client: 0
	window  int // client: KiB of a stream that it takes before it has to give more, at least 1. Server: 0
}

func (h hello) put() []byte {
	b := make([]byte, helloLen)
	binary.BigEndian.PutUint16(b, helloMagic)
	b[2] = h.version
	binary.BigEndian.PutUint16(b[4:], uint16(h.calls))
	binary.BigEndian.PutUint16(b[6:], uint16(h.window))
	return b
}

// parseHello takes a hello. What follows it is a transport's padding, or a later version's.
func parseHello(b []byte) (h hello, ok bool) {
	if len(b) < helloLen || binary.BigEndian.Uint16(b) != helloMagic || b[2] == 0 {
		return h, false
	}
	return hello{
		version: b[2],
		calls:   int(binary.BigEndian.Uint16(b[4:])),
		window:  int(binary.BigEndian.Uint16(b[6:])),
	}, true
}

// The longest message of an error and its details that are sent, and a method's name.
const (
	maxErrorText    = 4 << 10
	maxErrorDetails = 16 << 10
	maxMethodName   = 255
)

// appendError appends an error's body: length of the message u16, the message, the details.
func appendError(b []byte, text string, details []byte) []byte {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	if len(details) > maxErrorDetails {
		details = nil
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	b = append(b, text...)
	return append(b, details...)
}

// parseError takes an error's body apart; an empty one says nothing but its code. Details that are
// too long to be sent are left out.
func parseError(b []byte) (text string, details []byte, err error) {
	if len(b) == 0 {
		return "", nil, nil
	}
	if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
		return "", nil, fmt.Errorf("an error of %d bytes with a longer message", len(b))
	}
	n := int(binary.BigEndian.Uint16(b))
	text, b = string(b[2:2+n]), b[2+n:]
	if len(b) > 0 && len(b) <= maxErrorDetails {
		details = append([]byte(nil), b...)
	}
	return text, details, nil
}

// The most metadata of one call, and of one value.
const (
	maxMetadata      = 8 << 10
	maxMetadataKey   = 255
	maxMetadataValue = 4 << 10
)

// putRequest fills in a call's body.
func putRequest(p, metadata, body []byte) {
	if len(metadata) > 0 {
		p[0], p[1] = byte(len(metadata)>>8), byte(len(metadata))
		p = p[2+copy(p[2:], metadata):]
	}
	copy(p, body)
}

// appendPair appends a key and its value: length of the key u8, the key, length of the value u16,
// the value.
func appendPair(b []byte, key, value string) []byte {
	b = append(b, byte(len(key)))
	b = append(b, key...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}

// nextPair takes a key and its value off metadata.
func nextPair(b []byte) (key, value, rest []byte, ok bool) {
	if len(b) < 1 || len(b) < 1+int(b[0])+2 || b[0] == 0 {
		return nil, nil, nil, false
	}
	key, b = b[1:1+b[0]], b[1+b[0]:]
	n := int(binary.BigEndian.Uint16(b))
	if n > maxMetadataValue || len(b) < 2+n {
		return nil, nil, nil, false
	}
	return key, b[2 : 2+n], b[2+n:], true
}

// cutMetadata takes the metadata off a request that has some: length of all u16, then keys (length u8) and values (length u16). Not ok:
// it is not well formed.
func cutMetadata(body []byte) (metadata, request []byte, ok bool) {
	if len(body) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(body))
	if n > maxMetadata || n > len(body)-2 {
		return nil, nil, false
	}
	metadata, request = body[2:2+n:2+n], body[2+n:]
	for b := metadata; len(b) > 0; {
		if _, _, b, ok = nextPair(b); !ok {
			return nil, nil, false
		}
	}
	return metadata, request, true
}
