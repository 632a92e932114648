package traces

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/baggage"

	"github.com/rdmactor/rdmactor/rpc"
)

// The size of the context that travels with a call or a message is bounded in both directions. Only
// a value that is too large is left out: traceparent gets its room before baggage.
const (
	maxTraceState = 512  // W3C's recommendation
	maxBaggage    = 4096 // half of what W3C requires all to accept; all of an rpc value
	maxOther      = 1024 // the fields of other propagators
)

// fitsLimit reports whether a field is small enough to be taken from a peer, or sent to one.
func fitsLimit(key, value string) bool {
	switch key {
	case "tracestate":
		return len(value) <= maxTraceState
	case "baggage":
		return len(value) <= maxBaggage
	}
	return len(value) <= maxOther
}

// fields are the fields that a propagator has set, or reads.
type fields map[string]string

// Get returns a field that is small enough.
func (f fields) Get(key string) string {
	if v := f[key]; fitsLimit(key, v) {
		return v
	}
	return ""
}

// Set keeps a field if it is small enough and valid text: package remoting refuses a message with
// other bytes.
func (f fields) Set(key, value string) {
	if fitsLimit(key, value) && utf8.ValidString(key) && utf8.ValidString(value) {
		f[key] = value
	}
}

// Keys lists the fields.
func (f fields) Keys() []string {
	keys := make([]string, 0, len(f))
	for k := range f {
		keys = append(keys, k)
	}
	return keys
}

// injectFields returns the fields to send for ctx; nil: none, also if the propagator panics.
func (t *Tracing) injectFields(ctx context.Context) (f fields) {
	defer func() {
		if recover() != nil {
			t.panics.Add(1)
			f = nil
		}
	}()
	f = make(fields, 3)
	t.prop.Inject(ctx, f)
	return f
}

// wellFormed reports whether a field from a peer is well-formed. OpenTelemetry reports each
// malformed baggage to its error handler, which logs it: a peer could fill the log.
func wellFormed(key, value string) bool {
	if key != "baggage" || !fitsLimit(key, value) {
		return true
	}
	_, err := baggage.Parse(value)
	return err == nil
}

// extractFields returns ctx with the received fields. get returns a field.
func (t *Tracing) extractFields(ctx context.Context, get func(key string) string) (in context.Context) {
	defer func() {
		if recover() != nil {
			t.panics.Add(1)
			in = ctx
		}
	}()
	f := make(fields, 3)
	for _, key := range t.prop.Fields() {
		if v := get(key); v != "" && wellFormed(key, v) {
			f.Set(key, v)
		}
	}
	if len(f) == 0 {
		return ctx
	}
	return t.prop.Extract(ctx, f)
}

// inOrder yields the fields, first those that a trace cannot do without.
func (f fields) inOrder(yield func(key, value string) bool) {
	for _, key := range [...]string{"traceparent", "tracestate"} {
		if v, ok := f[key]; ok && !yield(key, v) {
			return
		}
	}
	for key, v := range f {
		if key != "traceparent" && key != "tracestate" && !yield(key, v) {
			return
		}
	}
}

// pairRoom is the room for a pair of rpc's metadata in addition to its key and value.
const pairRoom = 3

// outgoingContext adds ctx's fields to the metadata of calls made with it, as far as there is room.
func (t *Tracing) outgoingContext(ctx context.Context) context.Context {
	with := ctx
	for key, v := range t.injectFields(ctx).inOrder {
		if len(key) <= 255 && pairRoom+len(key)+len(v) <= rpc.MetadataRoom(with) {
			with = rpc.WithMetadata(with, key, v)
		}
	}
	return with
}

// Limits of a header of package remoting: docs/remoting-wire.md. A larger message is refused, so
// fields are added only up to these limits.
const (
	headerPairs = 64
	headerBytes = 16 << 10
)

// withHeader returns an envelope with ctx's fields. It is a copy, because the sender may send the
// original to others.
func (t *Tracing) withHeader(ctx context.Context, env *actor.MessageEnvelope) *actor.MessageEnvelope {
	add := t.injectFields(ctx)
	if len(add) == 0 {
		return env
	}
	to := &actor.MessageEnvelope{Message: env.Message, Sender: env.Sender}
	header, bytes := make(map[string]string, len(env.Header)+len(add)), 0
	old := t.prop.Fields() // the fields of the trace that a forwarded message arrived with
	for k, v := range env.Header {
		if !slices.Contains(old, k) {
			header[k] = v
			bytes += len(k) + len(v)
		}
	}
	for k, v := range add.inOrder {
		if more := len(k) + len(v); len(header) < headerPairs && bytes+more <= headerBytes {
			header[k] = v
			bytes += more
		}
	}
	to.Header = header
	return to
}
