package traces_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/traces"
)

// A call whose handler asks an actor is one trace. A program exports it with sdk/trace.WithBatcher
// and, for instance, the exporter otlptracegrpc.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithBatcher(traces.Guard(spans)))
	t := traces.New(traces.Config{Provider: provider})

	// Lines logged with a span's context contain trace_id and span_id.
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(traces.Handler(slog.NewTextHandler(io.Discard, nil)))
	}))
	// Config.Observer: t.Observer(nil) would add the connections.
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	clerk := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if name, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			system.Logger().InfoContext(t.Context(ctx), "greeting", "name", name.Value)
			ctx.Respond(wrapperspb.String("hello " + name.Value))
		}
	}, append(t.Props(), rt.OnLoop())...))

	method := rpc.NewMethod[wrapperspb.StringValue, wrapperspb.StringValue]("greeter.Greet")
	server := rpc.NewServer(rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{t.Server()}})
	rpc.Handle(server, method, func(ctx context.Context, name *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
		answer, err := t.Root(ctx, system.Root).RequestFuture(clerk, name, time.Second).Result()
		if err != nil {
			return nil, err
		}
		return answer.(*wrapperspb.StringValue), nil
	})
	at, err := server.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	client, err := rpc.Dial(context.Background(), rt, at.String(), rpc.ClientConfig{Interceptors: []rpc.Interceptor{t.Client()}})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := rpc.Call(context.Background(), client, method, wrapperspb.String("ann"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Value)

	client.Close()
	server.Close()
	if err := rt.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	system.Shutdown()
	_ = t.Flush(context.Background()) // its context does not end
	_ = provider.ForceFlush(context.Background())
	var list []string
	for _, s := range spans.GetSpans() {
		list = append(list, s.SpanKind.String()+" "+s.Name)
	}
	slices.Sort(list)
	for _, s := range list {
		fmt.Println(s)
	}
	_ = provider.Shutdown(context.Background())
	// Output:
	// hello ann
	// client greeter.Greet
	// consumer process *wrapperspb.StringValue
	// internal handler
	// internal queue
	// producer send *wrapperspb.StringValue
	// producer send *wrapperspb.StringValue
	// server greeter.Greet
}
