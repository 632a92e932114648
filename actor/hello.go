package actor

import "encoding/binary"

// helloLen is the length of the hello before the user's private data (docs/wire.md).
const helloLen = 12

const (
	helloMagic   = 0x7EDA
	helloVersion = 3
	// helloOldest is the earliest version that is still spoken.
	helloOldest = 2
	// maxUserData is the most private data a user can have: its length travels in a byte.
	maxUserData = 255
	// maxEager is the largest eager size, in bytes: it travels in a byte, in KiB.
	maxEager = 255 * kib
)

// hello is what both sides say of themselves in their private data: magic u16, version u8, user's
// length u8, credits u16, features u8, the largest message that may be sent at once in KiB u8, the
// largest that may be offered in bytes u32, in network order. There are no features yet; those of a
// later peer are not looked at. A peer of version 2 has the size in both bytes, so ours reads as it
// should.
type hello struct {
	version    uint8
	credits    int // messages the peer may have under way to us
	eager      int // bytes, whole KiB: what a receive of ours holds
	maxMessage int // bytes: what is larger than eager is offered, and we read it
}

// put makes the private data that goes to the device. user is at most maxUserData bytes, and
// h.eager at most maxEager.
func (h hello) put(user []byte) []byte {
	b := make([]byte, helloLen, helloLen+len(user))
	binary.BigEndian.PutUint16(b, helloMagic)
	b[2], b[3] = helloVersion, uint8(len(user))
	binary.BigEndian.PutUint16(b[4:], uint16(h.credits))
	b[7] = uint8(h.eager / kib)
	binary.BigEndian.PutUint32(b[8:], uint32(h.maxMessage))
	return append(b, user...)
}

// parseHello takes the hello off what the device brought. Not ok: the peer is none of ours, and all
// of b is the user's. What follows the user's bytes is padding, if the transport pads. The version
// is the lower of the peer's and ours.
func parseHello(b []byte, padded bool) (h hello, user []byte, ok bool) {
	if len(b) < helloLen || binary.BigEndian.Uint16(b) != helloMagic {
		return h, b, false
	}
	h = hello{min(b[2], helloVersion), int(binary.BigEndian.Uint16(b[4:])), int(b[7]) * kib, int(binary.BigEndian.Uint32(b[8:]))}
	if h.version == 2 {
		h.eager = int(binary.BigEndian.Uint16(b[6:])) * kib
	}
	end := helloLen + int(b[3])
	if h.version < helloOldest || h.credits == 0 || h.eager == 0 || h.maxMessage == 0 || end > len(b) {
		return hello{}, b, false
	}
	if !padded && end != len(b) || !zeros(b[end:]) {
		return hello{}, b, false
	}
	if end == helloLen {
		return h, nil, true
	}
	return h, b[helloLen:end:end], true
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
