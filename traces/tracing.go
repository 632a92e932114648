package traces

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/rdmactor/rdmactor/internal/optional"
)

// Name is the name of the tracer that makes all spans.
const Name = "github.com/rdmactor/rdmactor/traces"

// Config configures a Tracing. Zero fields have defaults.
type Config struct {
	// Provider makes the tracer. nil: OpenTelemetry's global one, as it is when New is called.
	Provider trace.TracerProvider
	// Propagator selects the context that travels with a call or a message. nil: traceparent,
	// tracestate and baggage. Without propagation.Baggage no peer's baggage gets into this process.
	Propagator propagation.TextMapPropagator
	// Queue is the number of spans that may wait for their end, because the SDK is slow: 4,096.
	// Further ones are dropped. Not positive: the default.
	Queue int
}

// Tracing makes spans.
type Tracing struct {
	tracer trace.Tracer
	prop   propagation.TextMapPropagator
	ends   queue
	panics atomic.Uint64
}

// New makes a Tracing.
func New(config ...Config) *Tracing {
	cfg := optional.Value(config)
	if cfg.Provider == nil {
		cfg.Provider = otel.GetTracerProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	t := &Tracing{tracer: cfg.Provider.Tracer(Name), prop: cfg.Propagator}
	t.ends.room = cmp.Or(max(cfg.Queue, 0), 4096)
	t.ends.panicked = func() { t.panics.Add(1) }
	return t
}

// Stats counts losses.
type Stats struct {
	Dropped  uint64 // spans, commands and states that found the queue full
	Panicked uint64 // calls of the SDK, or of code that it calls, that have panicked
}

// Stats returns the losses so far. Any goroutine.
func (t *Tracing) Stats() Stats {
	return Stats{Dropped: t.ends.dropped.Load(), Panicked: t.panics.Load()}
}

// Flush waits until the SDK has every span that has ended by now, or ctx ends. The SDK's own queue
// is flushed by its provider.
func (t *Tracing) Flush(ctx context.Context) error { return t.ends.flush(ctx) }

// startSpan begins a span. If the SDK panics, there is none: in is ctx, and the span records
// nothing.
func (t *Tracing) startSpan(ctx context.Context, name string, opts ...trace.SpanStartOption) (in context.Context, span trace.Span) {
	in, span = ctx, noop.Span{}
	defer func() {
		if recover() != nil {
			t.panics.Add(1)
			in, span = ctx, noop.Span{}
		}
	}()
	return t.tracer.Start(ctx, name, opts...)
}

// endSpan ends a span as of now, on the queue's goroutine. finish is called before that, if the
// span records.
func (t *Tracing) endSpan(span trace.Span, finish func(trace.Span)) {
	if !span.IsRecording() {
		return
	}
	at := time.Now()
	t.ends.put(func() {
		if finish != nil {
			finish(span)
		}
		span.End(trace.WithTimestamp(at))
	})
}

// addChildSpan makes a finished span within another one.
func (t *Tracing) addChildSpan(ctx context.Context, name string, from, to time.Time, opts ...trace.SpanStartOption) {
	_, span := t.startSpan(ctx, name, append(opts, trace.WithTimestamp(from))...)
	if span.IsRecording() {
		t.ends.put(func() { span.End(trace.WithTimestamp(to)) })
	}
}
