package traces

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

// soon is the time-out of a test for an expected event, much longer than that takes.
const soon = time.Minute

// machine has the parts of a process: an actor system, a runtime, and a Tracing.
type machine struct {
	t     testing.TB
	sys   *actor.ActorSystem
	rt    *rdma.Runtime
	tr    *Tracing
	spans *tracetest.InMemoryExporter
}

// boot starts a machine whose spans are kept. It ends with the test.
func boot(t testing.TB, opts ...sdktrace.TracerProviderOption) *machine {
	t.Helper()
	m := &machine{t: t, spans: tracetest.NewInMemoryExporter()}
	opts = append(opts, sdktrace.WithSyncer(m.spans))
	m.tr = New(Config{Provider: sdktrace.NewTracerProvider(opts...)})
	m.open(m.tr.Observer(nil))
	return m
}

// open starts the machine's runtime.
func (m *machine) open(o rdma.Observer) {
	m.t.Helper()
	m.sys = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	var err error
	if m.rt, err = rdma.Open(m.sys, rdma.Config{Device: iwarp.New(), Observer: o}); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := m.rt.Shutdown(ctx); err != nil {
			m.t.Error(err)
		}
		m.sys.Shutdown()
	})
}

func (m *machine) node(cfg remoting.Config) *remoting.Node {
	m.t.Helper()
	cfg.Listen = "127.0.0.1:0"
	n, err := remoting.Start(m.rt, cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := n.Shutdown(ctx); err != nil {
			m.t.Error(err)
		}
	})
	return n
}

func (m *machine) listen(s *rpc.Server) string {
	m.t.Helper()
	at, err := s.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(s.Close)
	return at.String()
}

func (m *machine) dial(addr string, cfg ...rpc.ClientConfig) *rpc.Client {
	m.t.Helper()
	c, err := rpc.Dial(context.Background(), m.rt, addr, cfg...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(c.Close)
	return c
}

// ended returns the spans that have ended, by name. It waits for those in the queue.
func (m *machine) ended() map[string]tracetest.SpanStub {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := m.tr.Flush(ctx); err != nil {
		m.t.Fatal(err)
	}
	all := make(map[string]tracetest.SpanStub)
	for _, s := range m.spans.GetSpans() {
		all[s.Name] = s
	}
	return all
}

// await waits until a span has ended.
func (m *machine) await(name string) tracetest.SpanStub {
	m.t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s, ok := m.ended()[name]; ok {
			return s
		}
	}
	m.t.Fatalf("no span %q in %v", name, names(m.ended()))
	panic("unreachable")
}

func names(all map[string]tracetest.SpanStub) (list []string) {
	for name := range all {
		list = append(list, name)
	}
	return list
}

// attr returns an attribute of a span as text; "" without one.
func attr(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if a.Key == attribute.Key(key) {
			return a.Value.String()
		}
	}
	return ""
}

// below fails the test if child is not a child of parent, in parent's trace.
func below(t testing.TB, parent, child tracetest.SpanStub) {
	t.Helper()
	if child.SpanContext.TraceID() != parent.SpanContext.TraceID() || child.Parent.SpanID() != parent.SpanContext.SpanID() {
		t.Errorf("%q is not below %q", child.Name, parent.Name)
	}
}
