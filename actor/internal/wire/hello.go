package wire

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// HelloLen is the length, in bytes, of the hello before the user's private data.
	HelloLen = 12
	// MaxUserData is the most private data, in bytes, that a user can have: its length travels in a
	// byte.
	MaxUserData = 255
	// MaxEager is the largest eager size, in bytes: it travels in a byte, in KiB.
	MaxEager = 255 * kib

	kib = 1 << 10

	helloMagic   = 0x7EDA
	helloVersion = 5
	// helloOldest is the earliest version that is still spoken.
	helloOldest = 4
)

// Hello contains the parameters of a side in its private data: magic u16, version u8, user's
// length u8, credits u16, features u8, the largest message that may be sent at once in KiB u8, the
// largest that may be offered in bytes u32, in network order. Of the features, the known ones
// describe how the connection is secured (docs/security-wire.md); others are ignored.
type Hello struct {
	Version    uint8 // the lower of both; of a hello that was parsed
	Features   uint8
	Credits    int // messages the peer may have under way to us: 1 to 65,535
	Eager      int // bytes, whole KiB up to MaxEager: the size of a local receive
	MaxMessage int // bytes, at least 1: larger ones than Eager are offered and read
}

// Put encodes the private data for the device, in new memory. user is at most MaxUserData bytes.
func (h Hello) Put(user []byte) []byte {
	b := make([]byte, HelloLen, HelloLen+len(user))
	binary.BigEndian.PutUint16(b, helloMagic)
	b[2], b[3] = helloVersion, uint8(len(user))
	binary.BigEndian.PutUint16(b[4:], uint16(h.Credits))
	b[6], b[7] = h.Features, uint8(h.Eager/kib)
	binary.BigEndian.PutUint32(b[8:], uint32(h.MaxMessage))
	return append(b, user...)
}

// VersionError reports that one side no longer speaks the other's version of the hello: the newer
// side refuses the older one. errors.Is: EPROTONOSUPPORT.
type VersionError struct{ Peer, Own uint8 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the peer's hello has version %d, ours %d, and one side no longer speaks the version of the other", e.Peer, e.Own)
}

// Unwrap gives EPROTONOSUPPORT.
func (e *VersionError) Unwrap() error { return unix.EPROTONOSUPPORT }

// NewVersionError returns the error for the peer whose private data is b, with a hello.
func NewVersionError(b []byte) *VersionError { return &VersionError{Peer: b[2], Own: helloVersion} }

// CheckVersion returns a *VersionError if the private data b has a hello of a version that is no
// longer spoken.
func CheckVersion(b []byte) error {
	if !beginsHello(b) || b[2] == 0 || b[2] >= helloOldest {
		return nil
	}
	return NewVersionError(b)
}

func beginsHello(b []byte) bool {
	return len(b) >= HelloLen && binary.BigEndian.Uint16(b) == helloMagic
}

// ParseHello splits the private data from the device into the hello and the user's private data.
// Not ok: the peer has sent no hello, and all of b is the user's. If the transport pads, padding
// follows the user's bytes. The version is the lower of the peer's and ours. user is part of b.
func ParseHello(b []byte, padded bool) (h Hello, user []byte, ok bool) {
	if !beginsHello(b) {
		return h, b, false
	}
	h = Hello{
		Version: min(b[2], helloVersion), Features: b[6], Credits: int(binary.BigEndian.Uint16(b[4:])),
		Eager: int(b[7]) * kib, MaxMessage: int(binary.BigEndian.Uint32(b[8:])),
	}
	end := HelloLen + int(b[3])
	if h.Version < helloOldest || h.Credits == 0 || h.Eager == 0 || h.MaxMessage == 0 || end > len(b) {
		return Hello{}, b, false
	}
	if !padded && end != len(b) || !allZeros(b[end:]) {
		return Hello{}, b, false
	}
	if end == HelloLen {
		return h, nil, true
	}
	return h, b[HelloLen:end:end], true
}

func allZeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
