package traces

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

var greet = rpc.NewRawMethod("greeter.Greet")

// One trace leads from a client through a handler to an actor on another node, and on to a second
// actor there. The links between the spans show the order and the place of each step.
func TestOneTrace(t *testing.T) {
	client, front, back := boot(t), boot(t), boot(t)
	front.node(remoting.Config{})
	backNode := back.node(remoting.Config{Expose: remoting.Expose{Reach: []string{"clerk"}}})

	seen := make(chan string, 1)
	archive := back.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			seen <- baggage.FromContext(back.tr.Context(ctx)).Member("user").Value()
		}
	}, back.tr.Props()...))
	if _, err := back.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			trace.SpanFromContext(back.tr.Context(ctx)).AddEvent("found")
			ctx.Send(archive, wrapperspb.Bytes(nil))
			ctx.Respond(wrapperspb.String("hello " + m.Value))
		}
	}, append(back.tr.Props(), back.rt.OnLoop())...), "clerk"); err != nil {
		t.Fatal(err)
	}

	server := rpc.NewServer(front.rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{front.tr.Server()}})
	rpc.HandleRaw(server, greet, func(ctx context.Context, q, reply []byte) ([]byte, error) {
		root := front.tr.Root(ctx, front.sys.Root)
		answer, err := remoting.Result(root.RequestFuture(actor.NewPID(backNode.Name(), "clerk"), wrapperspb.String(string(q)), soon))
		if err != nil {
			return nil, err
		}
		return append(reply, answer.(*wrapperspb.StringValue).Value...), nil
	})
	c := client.dial(front.listen(server), rpc.ClientConfig{Interceptors: []rpc.Interceptor{client.tr.Client()}})

	user, _ := baggage.NewMember("user", "ann")
	bag, _ := baggage.New(user)
	ctx, shop := client.tr.startSpan(baggage.ContextWithBaggage(t.Context(), bag), "shop")
	reply, err := rpc.CallRaw(ctx, c, greet, []byte("ann"), nil)
	if err != nil || string(reply) != "hello ann" {
		t.Fatalf("%q, %v", reply, err)
	}
	if user := <-seen; user != "ann" {
		t.Errorf("the baggage that has come along is %q", user)
	}
	client.tr.endSpan(shop, nil)

	calls, handled := client.ended(), front.ended()
	call := calls["greeter.Greet"]
	below(t, calls["shop"], call)
	served := handled["greeter.Greet"]
	below(t, call, served)
	below(t, served, handled["queue"])
	below(t, served, handled["handler"])
	sent := handled["send *wrapperspb.StringValue"]
	below(t, handled["handler"], sent)
	back.await("process *wrapperspb.BytesValue")
	messages := back.ended()
	clerk := messages["process *wrapperspb.StringValue"]
	below(t, sent, clerk)
	onward := messages["send *wrapperspb.BytesValue"]
	below(t, clerk, onward)
	below(t, onward, messages["process *wrapperspb.BytesValue"])
	below(t, clerk, messages["send *wrapperspb.StringValue"]) // the answer

	for _, s := range []struct {
		name       string
		kind, want trace.SpanKind
	}{
		{"client", call.SpanKind, trace.SpanKindClient},
		{"server", served.SpanKind, trace.SpanKindServer},
		{"producer", sent.SpanKind, trace.SpanKindProducer},
		{"consumer", clerk.SpanKind, trace.SpanKindConsumer},
	} {
		if s.kind != s.want {
			t.Errorf("the %s's span is of kind %v", s.name, s.kind)
		}
	}
	if len(clerk.Events) != 1 || clerk.Events[0].Name != "found" {
		t.Errorf("the actor's own event: %v", clerk.Events)
	}
	if served.StartTime.After(handled["queue"].StartTime) || handled["handler"].StartTime.Before(handled["queue"].EndTime) {
		t.Error("the queue is not before the handler, or not within the server's span")
	}
	for _, s := range []struct{ is, want string }{
		{attr(call, "rpc.system.name"), "rdmactor"},
		{attr(call, "rpc.method"), "greeter.Greet"},
		{attr(call, "rpc.response.status_code"), "OK"},
		{attr(served, "rpc.response.status_code"), "OK"},
		{attr(call, "server.address"), "127.0.0.1"},
		{attr(served, "client.address"), "127.0.0.1"},
		{attr(clerk, "messaging.destination.name"), "clerk"},
		{attr(sent, "server.address"), backNode.Name()},
	} {
		if s.is != s.want {
			t.Errorf("an attribute is %q, want %q", s.is, s.want)
		}
	}
}
