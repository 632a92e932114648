package secure

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// HelloLen is the length, in bytes, of the hello before everything else in the private data.
const HelloLen = 12

// Hello is a hello as it travels: docs/wire.md. Nothing here reads it.
type Hello [HelloLen]byte

// Device is the kind of device that carries a connection. Both sides have the same kind.
type Device uint8

// The kinds of devices.
const (
	DeviceIWARP      Device = 1 // MPA over TCP, by the embedded device or the kernel's
	DeviceInfiniBand Device = 2 // InfiniBand and RoCE
)

// HintLen is the length, in bytes, of the hint behind a request's hello.
const HintLen = 4

// PutHint writes a hint to the first HintLen bytes of b.
func PutHint(b []byte, hint uint32) { binary.BigEndian.PutUint32(b, hint) }

// ParseHint takes the hint off the bytes behind a request's hello. Not ok: there is none.
func ParseHint(b []byte) (hint uint32, rest []byte, ok bool) {
	if len(b) < HintLen {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32(b), b[HintLen:], true
}

// Binding contains the values that both sides of a connection must see alike, besides their
// hellos. It is part of the handshake: a change or a relay of it is detected.
type Binding struct {
	Device Device
	// The addresses as this side sees them: the connecting side's, and the one that it dials.
	// Both are left out if one is not valid. That is for networks that translate addresses.
	Client netip.Addr
	Server netip.AddrPort
	Hint   uint32 // of the request
}

const (
	pskLabel = "rdmactor-psk-1"
	tlsLabel = "rdmactor-tls-1"
)

// encodeFor writes the label, then the bound values: docs/security-wire.md has the layout.
func (b Binding) encodeFor(label string) []byte {
	p := append(make([]byte, 0, 96), label...)
	var client, server [16]byte
	var port uint16
	addresses := byte(0)
	if b.Client.IsValid() && b.Server.IsValid() {
		addresses = 1
		client, server, port = b.Client.As16(), b.Server.Addr().As16(), b.Server.Port()
	}
	p = append(p, byte(b.Device), addresses)
	p = append(p, client[:]...)
	p = append(p, server[:]...)
	p = binary.BigEndian.AppendUint16(p, port)
	return binary.BigEndian.AppendUint32(p, b.Hint)
}

// pskPrologue returns the prologue of PSK mode: it also has the request's hello and key id.
func (b Binding) pskPrologue(request Hello, id KeyID) []byte {
	p := append(b.encodeFor(pskLabel), request[:]...)
	return append(p, id[:]...)
}

// tlsParameters returns the transport parameters of TLS mode: a hash that covers both hellos.
func (b Binding) tlsParameters(request, reply Hello) [sha256.Size]byte {
	p := append(b.encodeFor(tlsLabel), request[:]...)
	return sha256.Sum256(append(p, reply[:]...))
}
