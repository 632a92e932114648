package rpc

import (
	"context"
	"encoding/binary"
	"fmt"
)

// The most metadata of one call, and of one value.
const (
	maxMetadata      = 8 << 10
	maxMetadataKey   = 255
	maxMetadataValue = 4 << 10
)

type metadataKey struct{}

// pairs is metadata on its way out: its bytes on the wire, without the length of all.
type pairs struct{ b []byte }

// WithMetadata adds a key and its value to what the calls made with the context carry to the server: credentials, a trace. A key has 1 to
// 255 bytes, a value up to 4 KiB, all together 8 KiB; what exceeds that fails the call with ErrTooLarge. Of a key that was added twice the
// later value counts.
func WithMetadata(ctx context.Context, key, value string) context.Context {
	was, _ := ctx.Value(metadataKey{}).(*pairs)
	p := &pairs{}
	if was != nil {
		p.b = append(p.b, was.b...)
	}
	if len(key) == 0 || len(key) > maxMetadataKey || len(value) > maxMetadataValue {
		p.b = make([]byte, maxMetadata+1) // the call says so
		return context.WithValue(ctx, metadataKey{}, p)
	}
	p.b = append(p.b, byte(len(key)))
	p.b = append(p.b, key...)
	p.b = binary.BigEndian.AppendUint16(p.b, uint16(len(value)))
	p.b = append(p.b, value...)
	return context.WithValue(ctx, metadataKey{}, p)
}

// outgoing is the metadata that a call made with ctx carries.
func outgoing(ctx context.Context) (b []byte, err error) {
	p, _ := ctx.Value(metadataKey{}).(*pairs)
	if p == nil {
		return nil, nil
	}
	if len(p.b) > maxMetadata {
		return nil, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("metadata: a key of 1 to %d bytes, a value of %d, %d in all",
			maxMetadataKey, maxMetadataValue, maxMetadata), Fate: FateNotSent}
	}
	return p.b, nil
}

// Metadata is the value that a call brought for a key; ok is false when it brought none. ctx is the handler's, or made of it.
func Metadata(ctx context.Context, key string) (value string, ok bool) {
	c, _ := ctx.Value(callKey{}).(*callContext)
	if c == nil {
		return "", false
	}
	for b := c.metadata; len(b) > 0; {
		var k, v []byte
		k, v, b, _ = nextPair(b) // checked when it came
		if string(k) == key {
			value, ok = string(v), true
		}
	}
	return value, ok
}

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
