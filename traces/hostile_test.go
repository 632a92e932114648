package traces

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// contexts are contexts that a hostile peer may send. None is valid; the rest of the call is.
var contexts = map[string]map[string]string{
	"empty":               {"traceparent": ""},
	"garbage":             {"traceparent": "\x00\xff"},
	"zeros":               {"traceparent": "00-00000000000000000000000000000000-0000000000000000-01"},
	"upper case":          {"traceparent": strings.ToUpper(parent)},
	"too long":            {"traceparent": parent + strings.Repeat("-0", 1900)},
	"version ff":          {"traceparent": "ff" + parent[2:]},
	"baggage of commas":   {"baggage": strings.Repeat(",", 4000)},
	"baggage of members":  {"baggage": strings.TrimSuffix(strings.Repeat("a=b,", 1000), ",")},
	"baggage, no UTF-8":   {"baggage": "a=\xff\xfe"},
	"tracestate, garbage": {"tracestate": strings.Repeat("=,", 1900)},
}

// hostileServer returns a machine with a server whose handler reports the trace of each call.
func hostileServer(t *testing.T) (m *machine, addr string, traces chan trace.SpanContext) {
	m, traces = boot(t), make(chan trace.SpanContext, 1)
	server := rpc.NewServer(m.rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{m.tr.Server()}})
	rpc.HandleRaw(server, greet, func(ctx context.Context, q, reply []byte) ([]byte, error) {
		traces <- trace.SpanContextFromContext(ctx)
		return append(reply, q...), nil
	})
	return m, m.listen(server), traces
}

// A call with an invalid context is handled, and begins a new trace.
func TestHostileMetadata(t *testing.T) {
	_, addr, traces := hostileServer(t)
	c := boot(t).dial(addr)
	for name, pairs := range contexts {
		ctx := t.Context()
		for k, v := range pairs {
			ctx = rpc.WithMetadata(ctx, k, v)
		}
		if _, err := rpc.CallRaw(ctx, c, greet, []byte("x"), nil); err != nil {
			t.Fatal(name, err)
		}
		if sc := <-traces; !sc.IsValid() || sc.TraceID().String() == parent[3:35] || sc.TraceState().Len() > 32 {
			t.Errorf("%s: %v", name, sc)
		}
	}
	for name, state := range map[string]string{"bad": strings.Repeat("=,", 1900), "large": "a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("x", 250) + ",c=" + strings.Repeat("x", 250)} {
		ctx := rpc.WithMetadata(rpc.WithMetadata(t.Context(), "traceparent", parent), "tracestate", state)
		if _, err := rpc.CallRaw(ctx, c, greet, []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		if sc := <-traces; sc.TraceID().String() != parent[3:35] || sc.TraceState().Len() != 0 {
			t.Errorf("with a %s tracestate a good traceparent is %v", name, sc)
		}
	}
}

// A call with 1,000 values is handled.
func TestManyValues(t *testing.T) {
	_, addr, traces := hostileServer(t)
	c := boot(t).dial(addr)
	ctx := t.Context()
	for i := range 1000 {
		ctx = rpc.WithMetadata(ctx, fmt.Sprint(i), "")
	}
	ctx = rpc.WithMetadata(ctx, "traceparent", parent)
	if _, err := rpc.CallRaw(ctx, c, greet, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if sc := <-traces; sc.TraceID().String() != parent[3:35] {
		t.Errorf("the trace is %v", sc)
	}
}

// A caller's metadata or header is not displaced: a call or a message without room is sent without
// the context.
func TestNoRoom(t *testing.T) {
	_, addr, traces := hostileServer(t)
	client := boot(t)
	c := client.dial(addr, rpc.ClientConfig{Interceptors: []rpc.Interceptor{client.tr.Client()}})
	ctx := rpc.WithMetadata(rpc.WithMetadata(t.Context(), "a", strings.Repeat("x", 4<<10)), "b", strings.Repeat("x", 4<<10-8))
	if room := rpc.MetadataRoom(ctx); room != 0 {
		t.Fatalf("room for %d bytes", room)
	}
	in, span := client.tr.startSpan(ctx, "shop")
	defer span.End()
	if _, err := rpc.CallRaw(in, c, greet, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if sc := <-traces; sc.TraceID() == span.SpanContext().TraceID() {
		t.Error("the context found room")
	}

	for name, header := range map[string]map[string]string{"pairs": many(64), "bytes": {"k": strings.Repeat("v", headerBytes-1)}} {
		env := client.tr.withHeader(in, &actor.MessageEnvelope{Header: header})
		if len(env.Header) != len(header) {
			t.Errorf("%s: %d pairs were added", name, len(env.Header)-len(header))
		}
	}
	header := many(10)
	if env := client.tr.withHeader(in, &actor.MessageEnvelope{Header: header}); len(env.Header) != 11 || len(header) != 10 {
		t.Errorf("%d pairs, and %d in the sender's own header", len(env.Header), len(header))
	}
}

// A peer's invalid baggage is not logged.
func TestQuietBaggage(t *testing.T) {
	var logged atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { logged.Add(1) }))
	defer otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Print(err) }))
	tr := New(Config{})
	for name, header := range contexts {
		tr.extractFields(t.Context(), fields(header).Get)
		if logged.Swap(0) != 0 {
			t.Errorf("%s: logged", name)
		}
	}
	ctx := tr.extractFields(t.Context(), fields{"baggage": "a=b"}.Get)
	if baggage.FromContext(ctx).Member("a").Value() != "b" {
		t.Error("a baggage that is one was left out")
	}
}

// bytesOnly is a propagator that adds fields with invalid text.
type bytesOnly struct{ propagation.TraceContext }

func (p bytesOnly) Inject(ctx context.Context, to propagation.TextMapCarrier) {
	p.TraceContext.Inject(ctx, to)
	to.Set("bytes", "\xff")
	to.Set("\xfe", "key")
}

// Fields that a message cannot carry are left out, and the message is sent.
func TestNoText(t *testing.T) {
	tr := New(Config{Propagator: bytesOnly{}, Provider: sdktrace.NewTracerProvider()})
	ctx, span := tr.startSpan(t.Context(), "shop")
	defer span.End()
	env := tr.withHeader(ctx, &actor.MessageEnvelope{})
	if len(env.Header) != 1 || env.Header["traceparent"] == "" {
		t.Errorf("the header is %q", env.Header)
	}
}

func many(n int) map[string]string {
	header := make(map[string]string)
	for i := range n {
		header[fmt.Sprint(i)] = "v"
	}
	return header
}

// A message of another node with an invalid context is received outside of any trace.
func TestHostileHeaders(t *testing.T) {
	here, there := boot(t), boot(t)
	here.node(remoting.Config{})
	node := there.node(remoting.Config{Expose: remoting.Expose{Reach: []string{"*"}}})
	got := make(chan context.Context, 1)
	if _, err := there.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			got <- there.tr.Context(ctx)
		}
	}, append(there.tr.Props(), there.rt.OnLoop())...), "a"); err != nil {
		t.Fatal(err)
	}
	for name, header := range contexts {
		if name == "garbage" || name == "baggage, no UTF-8" {
			continue // package remoting accepts only headers of valid UTF-8
		}
		here.sys.Root.Send(actor.NewPID(node.Name(), "a"), &actor.MessageEnvelope{Message: wrapperspb.String("x"), Header: header})
		if sc := trace.SpanContextFromContext(<-got); sc.IsValid() {
			t.Errorf("%s: %v", name, sc)
		}
	}
	header := many(62)
	header["traceparent"], header["baggage"] = parent, strings.Repeat("x", 8<<10)
	here.sys.Root.Send(actor.NewPID(node.Name(), "a"), &actor.MessageEnvelope{Message: wrapperspb.String("x"), Header: header})
	if sc := trace.SpanContextFromContext(<-got); sc.TraceID().String() != parent[3:35] {
		t.Errorf("with a baggage that is too large a good traceparent is %v", sc)
	}
}

// badExporter calls its function.
type badExporter struct{ export func() error }

func (e badExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return e.export() }
func (badExporter) Shutdown(context.Context) error                               { return nil }

// sampler calls its function.
type sampler func()

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s()
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}
func (sampler) Description() string { return "bad" }

// calls calls a handler on a loop n times; all spans are m's.
func (m *machine) calls(t *testing.T, n int) {
	t.Helper()
	server := rpc.NewServer(m.rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{m.tr.Server()}})
	rpc.HandleRaw(server, greet, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil },
		rpc.HandlerConfig{OnLoop: true})
	c := m.dial(m.listen(server), rpc.ClientConfig{Interceptors: []rpc.Interceptor{m.tr.Client()}})
	for range n {
		if reply, err := rpc.CallRaw(t.Context(), c, greet, []byte("x"), nil); err != nil || string(reply) != "x" {
			t.Fatal(err)
		}
	}
}

func bad(t *testing.T, opt ...sdktrace.TracerProviderOption) *machine {
	m := &machine{t: t, tr: New(Config{Provider: sdktrace.NewTracerProvider(opt...), Queue: 100})}
	m.open(m.tr.Observer(nil))
	return m
}

// An exporter that blocks, even in the SDK's simple processor, costs spans: no caller waits for it.
func TestBlockedExporter(t *testing.T) {
	open := make(chan struct{})
	m := bad(t, sdktrace.WithSyncer(badExporter{func() error { <-open; return nil }}))
	m.calls(t, 200)
	if n := m.tr.Stats().Dropped; n == 0 {
		t.Error("nothing was dropped")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := m.tr.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush: %v", err)
	}
	close(open)
	if err := m.tr.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// An exporter that panics loses its spans.
func TestPanickingExporter(t *testing.T) {
	m := bad(t, sdktrace.WithSyncer(badExporter{func() error { panic("no") }}))
	m.calls(t, 10)
	if err := m.tr.Flush(t.Context()); err != nil || m.tr.Stats().Panicked == 0 {
		t.Errorf("%v, %+v", err, m.tr.Stats())
	}
}

// With Guard the SDK's goroutine survives a panic, and goes on exporting.
func TestGuard(t *testing.T) {
	calls := make(chan struct{}, 100)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(Guard(badExporter{func() error {
		calls <- struct{}{}
		panic("no")
	}}), sdktrace.WithBatchTimeout(time.Millisecond)))
	m := &machine{t: t, tr: New(Config{Provider: provider})}
	m.open(nil)
	for range 2 {
		m.calls(t, 2)
		select {
		case <-calls:
		case <-time.After(soon):
			t.Fatal("nothing is exported any more")
		}
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Log(err) // the exporter's, as an error
	}
}

// A sampler that panics loses its span: the call is made, handled and answered.
func TestPanickingSampler(t *testing.T) {
	m := bad(t, sdktrace.WithSampler(sampler(func() { panic("no") })))
	m.calls(t, 10)
	if err := m.tr.Flush(t.Context()); err != nil || m.tr.Stats().Panicked < 20 {
		t.Errorf("%v, %+v", err, m.tr.Stats())
	}
}
