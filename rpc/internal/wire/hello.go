package wire

import "encoding/binary"

const (
	helloMagic = 0x7EDB
	// HelloVersion is the version that this package speaks.
	HelloVersion = 1
	helloLen     = 8
)

// Hello is the private data in which both sides describe themselves: magic u16, version u8, 0 u8,
// calls u16, window u16.
type Hello struct {
	Version uint8
	Calls   int // server: limit of the client's unanswered calls, at least 1. Client: 0
	// client: KiB of a stream that the server may send before the client grants more, at least 1.
	// Server: 0
	Window int
}

// Bytes returns the hello as it travels.
func (h Hello) Bytes() []byte {
	b := make([]byte, helloLen)
	binary.BigEndian.PutUint16(b, helloMagic)
	b[2] = h.Version
	binary.BigEndian.PutUint16(b[4:], uint16(h.Calls))
	binary.BigEndian.PutUint16(b[6:], uint16(h.Window))
	return b
}

// ParseHello parses a hello. Further bytes are a transport's padding, or belong to a later version.
func ParseHello(b []byte) (h Hello, ok bool) {
	if len(b) < helloLen || binary.BigEndian.Uint16(b) != helloMagic || b[2] == 0 {
		return h, false
	}
	return Hello{
		Version: b[2],
		Calls:   int(binary.BigEndian.Uint16(b[4:])),
		Window:  int(binary.BigEndian.Uint16(b[6:])),
	}, true
}
