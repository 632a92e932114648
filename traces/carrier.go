package traces

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/baggage"

	"github.com/rdmactor/rdmactor/rpc"
)

// What goes along with a call or a message is bounded, in both directions. A value that is too
// large is left out, and nothing else: traceparent always has room before baggage takes it.
const (
	maxTraceState = 512  // as W3C recommends
	maxBaggage    = 4096 // half of what W3C has everybody take; all of an rpc value
	maxOther      = 1024 // the fields of other propagators
)

// fits reports whether a field is small enough to be taken from a peer, or sent to one.
func fits(key, value string) bool {
	switch key {
	case "tracestate":
		return len(value) <= maxTraceState
	case "baggage":
		return len(value) <= maxBaggage
	}
	return len(value) <= maxOther
}

// fields are what a propagator has given, or takes.
type fields map[string]string

// Get returns a field that is small enough.
func (f fields) Get(key string) string {
	if v := f[key]; fits(key, v) {
		return v
	}
	return ""
}

// Set keeps a field that is small enough, and text: package remoting refuses a message with others.
func (f fields) Set(key, value string) {
	if fits(key, value) && utf8.ValidString(key) && utf8.ValidString(value) {
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

// inject returns what of ctx goes along; nil: nothing, also if the propagator panics.
func (t *Tracing) inject(ctx context.Context) (f fields) {
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

// wellFormed reports whether a field from a peer is. OpenTelemetry reports each baggage that is not
// to its error handler, which logs it: a peer could fill the log.
func wellFormed(key, value string) bool {
	if key != "baggage" || !fits(key, value) {
		return true
	}
	_, err := baggage.Parse(value)
	return err == nil
}

// extract returns ctx with what has come along. get returns a field.
func (t *Tracing) extract(ctx context.Context, get func(key string) string) (in context.Context) {
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

// order has the fields that a trace cannot do without first.
func (f fields) order(yield func(key, value string) bool) {
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

// pairRoom is what a pair of rpc's metadata takes besides its key and value.
const pairRoom = 3

// outgoing puts what of ctx goes along into the metadata of calls made with it, as far as there is
// room for it.
func (t *Tracing) outgoing(ctx context.Context) context.Context {
	with := ctx
	for key, v := range t.inject(ctx).order {
		if len(key) <= 255 && pairRoom+len(key)+len(v) <= rpc.MetadataRoom(with) {
			with = rpc.WithMetadata(with, key, v)
		}
	}
	return with
}

// What a header of package remoting has room for: docs/remoting-wire.md. A message with more is
// refused, so the fields are added only as far as they leave it below that.
const (
	headerPairs = 64
	headerBytes = 16 << 10
)

// withHeader is an envelope with what of ctx goes along. It is a copy, because the sender may send
// its own to others.
func (t *Tracing) withHeader(ctx context.Context, env *actor.MessageEnvelope) *actor.MessageEnvelope {
	add := t.inject(ctx)
	if len(add) == 0 {
		return env
	}
	to := &actor.MessageEnvelope{Message: env.Message, Sender: env.Sender}
	header, bytes := make(map[string]string, len(env.Header)+len(add)), 0
	old := t.prop.Fields() // of the trace that a forwarded message has come with
	for k, v := range env.Header {
		if !slices.Contains(old, k) {
			header[k] = v
			bytes += len(k) + len(v)
		}
	}
	for k, v := range add.order {
		if more := len(k) + len(v); len(header) < headerPairs && bytes+more <= headerBytes {
			header[k] = v
			bytes += more
		}
	}
	to.Header = header
	return to
}
