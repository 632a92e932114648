package rpc

import (
	"context"
	"fmt"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

type metadataKey struct{}

// pairs is metadata for calls that will be made: its bytes on the wire, without the length of all.
type pairs struct{ b []byte }

// WithMetadata adds a key and its value to what the calls made with the context carry to the
// server: credentials, a trace. A key has 1 to 255 bytes, a value up to 4 KiB, and all pairs
// together up to 8 KiB. Calls with anything else fail with ErrTooLarge. If a key was added twice,
// the later value counts.
func WithMetadata(ctx context.Context, key, value string) context.Context {
	was, _ := ctx.Value(metadataKey{}).(*pairs)
	p := &pairs{}
	if was != nil {
		p.b = append(p.b, was.b...)
	}
	if len(key) == 0 || len(key) > wire.MaxMetadataKey || len(value) > wire.MaxMetadataValue {
		p.b = make([]byte, wire.MaxMetadata+1) // so the call fails
		return context.WithValue(ctx, metadataKey{}, p)
	}
	p.b = wire.AppendPair(p.b, key, value)
	return context.WithValue(ctx, metadataKey{}, p)
}

// outgoing is the metadata that a call made with ctx carries.
func outgoing(ctx context.Context) (b []byte, err error) {
	p, _ := ctx.Value(metadataKey{}).(*pairs)
	if p == nil {
		return nil, nil
	}
	if len(p.b) > wire.MaxMetadata {
		return nil, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("metadata: a key of 1 to %d bytes, a value of %d, %d in all",
			wire.MaxMetadataKey, wire.MaxMetadataValue, wire.MaxMetadata), Fate: FateNotSent}
	}
	return p.b, nil
}

// Metadata returns the value that the caller has sent for a key. ok is false if it has sent none.
// ctx is the handler's context, or derived from it.
func Metadata(ctx context.Context, key string) (value string, ok bool) {
	c, _ := ctx.Value(callKey{}).(*callContext)
	if c == nil {
		return "", false
	}
	for b := c.metadata; len(b) > 0; {
		var k, v []byte
		k, v, b, _ = wire.NextPair(b) // checked when it came
		if string(k) == key {
			value, ok = string(v), true
		}
	}
	return value, ok
}
