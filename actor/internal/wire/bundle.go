package wire

import "encoding/binary"

// A bundle is several messages in one Send. Behind its header each message follows its length, a
// u16 in network order. Each takes a credit and is consumed as if it had come alone; the Send uses
// up one receive.

const (
	// BundledLen is the length, in bytes, of what precedes each message in a bundle.
	BundledLen = 2
	// MaxBundle is the maximum number of messages in a bundle. The receiver has memory for each
	// message besides its bytes, and an empty one has only a length.
	MaxBundle = 256
)

// Bundles reports whether the peer takes bundles.
func (s *Session) Bundles() bool { return s.version >= 5 }

// AppendBundled appends a message to a bundle. It has at most 65,535 bytes.
func AppendBundled(b, message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(message))), message...)
}

// CountBundle returns the number of messages in the bytes behind a bundle's header. An error is a
// *ProtocolError: there is none, there are too many, or the last one is cut off.
func CountBundle(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, newProtocolError("a bundle without messages")
	}
	for len(b) > 0 {
		if n == MaxBundle {
			return 0, newProtocolError("a bundle of more than %d messages", MaxBundle)
		}
		if len(b) < BundledLen {
			return 0, newProtocolError("a bundle that ends in the length of message %d", n)
		}
		size := BundledLen + int(binary.BigEndian.Uint16(b))
		if size > len(b) {
			return 0, newProtocolError("message %d of a bundle has %d bytes, and %d follow", n, size-BundledLen, len(b)-BundledLen)
		}
		b = b[size:]
		n++
	}
	return n, nil
}

// CutBundled splits the first message off the bytes that CountBundle has accepted. The messages are
// parts of b.
func CutBundled(b []byte) (message, rest []byte) {
	end := BundledLen + int(binary.BigEndian.Uint16(b))
	return b[BundledLen:end:end], b[end:]
}

// SentBundle notes that the device has taken a bundle of n messages.
func (s *Session) SentBundle(n int) {
	s.sent += uint32(n)
	s.Sent(TypeBundle, 0)
}

// TakeBundle accounts for a bundle of n messages, at least one, with the header h. An error is a
// *ProtocolError.
func (s *Session) TakeBundle(h Header, n int) error {
	if err := s.takeHeader(h); err != nil {
		return err
	}
	return s.takeCredits(uint32(n))
}
