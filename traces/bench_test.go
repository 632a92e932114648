package traces

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// nothing returns an exporter that drops all spans.
func nothing() sdktrace.TracerProviderOption {
	return sdktrace.WithBatcher(badExporter{func() error { return nil }})
}

// BenchmarkCall makes calls one after the other: without this module, with connections traced only,
// with calls that no sampler takes, and with all of them recorded.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name      string
		calls     bool
		observed  bool
		providers []sdktrace.TracerProviderOption
	}{
		{"off", false, false, nil},
		{"connections", false, true, []sdktrace.TracerProviderOption{nothing()}},
		{"unsampled", true, false, []sdktrace.TracerProviderOption{sdktrace.WithSampler(sdktrace.NeverSample())}},
		{"recorded", true, false, []sdktrace.TracerProviderOption{nothing()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			provider := sdktrace.NewTracerProvider(c.providers...)
			// losses do not matter
			b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
			m := &machine{t: b, tr: New(Config{Provider: provider})}
			var o rdma.Observer
			if c.observed {
				o = m.tr.Observer(nil)
			}
			m.open(o)
			var client rpc.ClientConfig
			var server rpc.ServerConfig
			if c.calls {
				client.Interceptors, server.Interceptors = []rpc.Interceptor{m.tr.Client()}, []rpc.Interceptor{m.tr.Server()}
			}
			s := rpc.NewServer(m.rt, server)
			rpc.HandleRaw(s, greet, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil })
			conn := m.dial(m.listen(s), client)
			var reply []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if reply, err = rpc.CallRaw(context.Background(), conn, greet, []byte("x"), reply[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(m.tr.Stats().Dropped), "dropped")
		})
	}
}

// BenchmarkRequest makes requests to an actor: without Props, with Props outside of a trace, and
// within one.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name          string
		props, traced bool
	}{{"off", false, false}, {"outside", true, false}, {"recorded", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			provider := sdktrace.NewTracerProvider(nothing())
			// losses do not matter
			b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
			m := &machine{t: b, tr: New(Config{Provider: provider})}
			m.open(nil)
			var props []actor.PropsOption
			if c.props {
				props = m.tr.Props()
			}
			pid := m.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if q, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					ctx.Respond(q)
				}
			}, props...))
			root := m.sys.Root
			if c.traced {
				ctx, span := m.tr.startSpan(context.Background(), "all")
				defer span.End()
				root = m.tr.Root(ctx, root)
			}
			q := wrapperspb.String("x")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := root.RequestFuture(pid, q, soon).Result(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
