package wire

import "encoding/binary"

// The most metadata of one call, and of one value.
const (
	MaxMetadata      = 8 << 10
	MaxMetadataKey   = 255
	MaxMetadataValue = 4 << 10
)

// RequestLen returns the length of a call's body.
func RequestLen(metadata, body []byte) int {
	if len(metadata) > 0 {
		return 2 + len(metadata) + len(body)
	}
	return len(body)
}

// PutRequest fills in a call's body.
func PutRequest(p, metadata, body []byte) {
	if len(metadata) > 0 {
		p[0], p[1] = byte(len(metadata)>>8), byte(len(metadata))
		p = p[2+copy(p[2:], metadata):]
	}
	copy(p, body)
}

// AppendPair appends a key and its value: length of the key u8, the key, length of the value u16,
// the value.
func AppendPair(b []byte, key, value string) []byte {
	b = append(b, byte(len(key)))
	b = append(b, key...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}

// NextPair takes a key and its value off metadata.
func NextPair(b []byte) (key, value, rest []byte, ok bool) {
	if len(b) < 1 || len(b) < 1+int(b[0])+2 || b[0] == 0 {
		return nil, nil, nil, false
	}
	key, b = b[1:1+b[0]], b[1+b[0]:]
	n := int(binary.BigEndian.Uint16(b))
	if n > MaxMetadataValue || len(b) < 2+n {
		return nil, nil, nil, false
	}
	return key, b[2 : 2+n], b[2+n:], true
}

// CutMetadata takes the metadata off a request that has some: length of all u16, then keys (length
// u8) and values (length u16). Not ok: it is not well formed.
func CutMetadata(body []byte) (metadata, request []byte, ok bool) {
	if len(body) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(body))
	if n > MaxMetadata || n > len(body)-2 {
		return nil, nil, false
	}
	metadata, request = body[2:2+n:2+n], body[2+n:]
	if !ValidMetadata(metadata) {
		return nil, nil, false
	}
	return metadata, request, true
}

// ValidMetadata reports whether b is keys and values, and not too much of them.
func ValidMetadata(b []byte) (ok bool) {
	if len(b) > MaxMetadata {
		return false
	}
	for len(b) > 0 {
		if _, _, b, ok = NextPair(b); !ok {
			return false
		}
	}
	return true
}
