package wire

import "encoding/binary"

const (
	helloMagic = 0x7EDB
	// HelloVersion is the lowest version that this package speaks, and Latest the highest.
	HelloVersion = 1
	Latest       = 3
	helloLen     = 8
)

// Hello is the private data in which both sides describe themselves: magic u16, version u8, latest
// u8, calls u16, window u16.
type Hello struct {
	Version uint8
	// client: the highest version that it speaks. Server: the version of the connection. 0: Version
	Latest uint8
	Calls  int // server: limit of the client's unanswered calls, at least 1. Client: 0
	// KiB of a stream that the peer may send before this side grants more. Client: at least 1. Of a
	// server of version 1: 0
	Window int
}

// Agreed returns the version of a connection with the sender of h.
func (h Hello) Agreed() uint8 { return min(max(h.Version, h.Latest), Latest) }

// Bytes returns the hello as it travels.
func (h Hello) Bytes() []byte {
	b := make([]byte, helloLen)
	binary.BigEndian.PutUint16(b, helloMagic)
	b[2], b[3] = h.Version, h.Latest
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
		Latest:  b[3],
		Calls:   int(binary.BigEndian.Uint16(b[4:])),
		Window:  int(binary.BigEndian.Uint16(b[6:])),
	}, true
}
