package rpc

import (
	"context"
	"fmt"
	"iter"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Pairs is metadata: keys with their values, in the order in which they were set. A key may be
// there more than once. The zero value has none. It must not be changed, and may be kept.
type Pairs struct{ b []byte }

// Get returns the last value of a key. Not ok: there is none.
func (p Pairs) Get(key string) (value string, ok bool) {
	for k, v := range p.eachRaw {
		if string(k) == key {
			value, ok = string(v), true
		}
	}
	return value, ok
}

// All returns an iterator over keys and values.
func (p Pairs) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for k, v := range p.eachRaw {
			if !yield(string(k), string(v)) {
				return
			}
		}
	}
}

// eachRaw iterates over the bytes, which were checked on arrival.
func (p Pairs) eachRaw(yield func(key, value []byte) bool) {
	for b := p.b; len(b) > 0; {
		var k, v []byte
		if k, v, b, _ = wire.NextPair(b); !yield(k, v) {
			return
		}
	}
}

// withPair returns p and another pair behind it. Not ok: a limit is exceeded.
func (p Pairs) withPair(key, value string) (_ Pairs, ok bool) {
	if len(key) == 0 || len(key) > wire.MaxMetadataKey || len(value) > wire.MaxMetadataValue ||
		len(p.b)+len(key)+len(value)+3 > wire.MaxMetadata {
		return p, false
	}
	return Pairs{wire.AppendPair(p.b[:len(p.b):len(p.b)], key, value)}, true
}

// errMetadata returns the error for metadata that exceeds a limit.
func errMetadata() *Error {
	return &Error{Code: CodeTooLarge, Message: fmt.Sprintf("metadata: a key of 1 to %d bytes, a value of %d, %d in all",
		wire.MaxMetadataKey, wire.MaxMetadataValue, wire.MaxMetadata), Fate: FateNotSent}
}

// SetHeader adds metadata to a call's answer that its caller gets before the answer, and before the
// items of a stream. ctx is the handler's, or derived from it. A key has 1 to 255 bytes, a value up
// to 4 KiB, and all pairs together up to 8 KiB: ErrTooLarge. It fails once an item was sent, and
// after the call has ended. A client of version 1 of the protocol does not get it.
func SetHeader(ctx context.Context, key, value string) error {
	return setMeta(ctx, key, value, func(c *callContext) *Pairs {
		if c.headed.Load() {
			return nil
		}
		return &c.meta.Load().header
	})
}

// SetTrailer is SetHeader for metadata that comes with the end of the call: with the answer, the
// error, or the end of the stream.
func SetTrailer(ctx context.Context, key, value string) error {
	return setMeta(ctx, key, value, func(c *callContext) *Pairs { return &c.meta.Load().trailer })
}

// setMeta adds a pair to the Pairs that of returns. nil: they were sent.
func setMeta(ctx context.Context, key, value string, of func(*callContext) *Pairs) error {
	c, _ := ctx.Value(callKey{}).(*callContext)
	if c == nil {
		return &Error{Code: CodeInternal, Message: "metadata: the context is not a handler's", Fate: FateNotSent}
	}
	over := c.Err() != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.meta.Load() == nil {
		c.meta.Store(new(answerMeta))
	}
	p := of(c)
	if p == nil || over {
		return &Error{Code: CodeClosed, Message: "metadata: it was sent before", Fate: FateNotSent}
	}
	more, ok := p.withPair(key, value)
	if !ok {
		return errMetadata()
	}
	*p = more
	return nil
}

// answerMeta is the metadata of an answer: what a handler sends, or what a client has received.
type answerMeta struct{ header, trailer Pairs }

// takeHeader returns the header that is to be sent now. nil: none. No header may be set any longer.
func (c *callContext) takeHeader() []byte {
	if c.headed.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.meta.Load(); !c.headed.Swap(true) && m != nil {
		return m.header.b
	}
	return nil
}

// takeAll returns the header that is to be sent now, and the trailer. nil: none. There is metadata.
func (c *callContext) takeAll() (header, trailer []byte) {
	header = c.takeHeader()
	c.mu.Lock()
	defer c.mu.Unlock()
	return header, c.meta.Load().trailer.b
}

// CallOption changes a single call.
type CallOption struct{ callOptions }

type callOptions struct{ header, trailer *Pairs }

// ReceiveHeader sets into to the metadata that the handler has sent before its answer (SetHeader),
// when the call returns; of a stream when an item was received. With retries it is that of the last
// attempt.
func ReceiveHeader(into *Pairs) CallOption { return CallOption{callOptions{header: into}} }

// ReceiveTrailer sets into to the metadata that the handler has sent with its answer or error
// (SetTrailer), when the call returns; of a stream when its end was received.
func ReceiveTrailer(into *Pairs) CallOption { return CallOption{callOptions{trailer: into}} }

// optionsOf returns the options together.
func optionsOf(opts []CallOption) (all callOptions) {
	for i := range opts {
		if o := &opts[i]; o.header != nil {
			all.header = o.header
		}
		if o := &opts[i]; o.trailer != nil {
			all.trailer = o.trailer
		}
	}
	return all
}

// wantsMeta reports whether the metadata of the answer is asked for.
func (o *callOptions) wantsMeta() bool { return o.header != nil || o.trailer != nil }

// deliverMeta sets the targets of the options.
func (o *callOptions) deliverMeta(m *answerMeta) {
	if o.header != nil {
		*o.header = m.header
	}
	if o.trailer != nil {
		*o.trailer = m.trailer
	}
}
