package traces

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/rpc"
)

var (
	count   = rpc.NewStream[wrapperspb.Int64Value, wrapperspb.Int64Value]("counter.Count")
	errGone = rpc.RegisterCode(4711, "gone")
)

// pair returns a client and a server with spans.
func pair(t *testing.T, handle func(ctx context.Context, q, reply []byte) ([]byte, error)) (client, server *machine, c *rpc.Client) {
	client, server = boot(t), boot(t)
	s := rpc.NewServer(server.rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{server.tr.Server()}})
	rpc.HandleRaw(s, greet, handle)
	rpc.HandleStream(s, count, func(_ context.Context, q *wrapperspb.Int64Value, out *rpc.Sender[wrapperspb.Int64Value]) error {
		for i := int64(0); q.Value < 0 || i < q.Value; i++ {
			if err := out.Send(wrapperspb.Int64(i)); err != nil {
				return err
			}
		}
		return nil
	})
	return client, server, client.dial(server.listen(s), rpc.ClientConfig{Interceptors: []rpc.Interceptor{client.tr.Client()}})
}

// Errors have this package's code names, on both sides; a text of any length is cut.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   string
		server codes.Code // of the server's span
	}{
		{errors.New("lost"), "UNKNOWN", codes.Error},
		{errGone, "4711", codes.Unset},
		{&rpc.Error{Code: rpc.CodeOverloaded, Message: strings.Repeat("é", 2000)}, "OVERLOADED", codes.Unset},
	} {
		client, server, conn := pair(t, func(context.Context, []byte, []byte) ([]byte, error) { return nil, c.err })
		_, err := rpc.CallRaw(t.Context(), conn, greet, nil, nil)
		if err == nil {
			t.Fatal("no error")
		}
		here, there := client.await("greeter.Greet"), server.await("greeter.Greet")
		below(t, here, there)
		if attr(here, "rpc.response.status_code") != c.code || attr(there, "error.type") != c.code ||
			here.Status.Code != codes.Error || there.Status.Code != c.server {
			t.Errorf("%v: %v %v, %v %v", c.err, here.Attributes, here.Status, there.Attributes, there.Status)
		}
		if n := len(here.Status.Description); n == 0 || n > maxText {
			t.Errorf("%v: a text of %d bytes", c.code, n)
		}
		if attr(here, "rdmactor.fate") != rpc.FateAnswered.String() {
			t.Errorf("%v: %v", c.code, here.Attributes)
		}
	}
}

// The code names are those of the codes, all different.
func TestCodeNames(t *testing.T) {
	seen := make(map[string]bool)
	for code := rpc.Code(0); code <= rpc.CodeVersion; code++ {
		name := codeName(code)
		if seen[name] || strings.ToUpper(name) != name || name[0] <= '9' {
			t.Errorf("code %d is %q", code, name)
		}
		seen[name] = true
	}
}

// The spans of a handler that panics report that.
func TestPanickingHandler(t *testing.T) {
	_, server, c := pair(t, func(context.Context, []byte, []byte) ([]byte, error) { panic("no") })
	if _, err := rpc.CallRaw(t.Context(), c, greet, nil, nil); !errors.Is(err, rpc.ErrInternal) {
		t.Fatal(err)
	}
	if s := server.await("greeter.Greet"); s.Status.Code != codes.Error || attr(s, "error.type") != "panic" {
		t.Errorf("%v %v", s.Status, s.Attributes)
	}
	server.await("handler")
}

// A stream's span at its client lasts until the stream has ended.
func TestStreams(t *testing.T) {
	client, server, c := pair(t, nil)
	in, err := rpc.Open(t.Context(), c, count, wrapperspb.Int64(20_000)) // more than a window
	if err != nil {
		t.Fatal(err)
	}
	if _, early := client.ended()["counter.Count"]; early {
		t.Error("the span has ended before the stream")
	}
	for _, err := range in.All() {
		if err != nil {
			t.Fatal(err)
		}
	}
	here := client.await("counter.Count")
	below(t, here, server.await("counter.Count"))
	if attr(here, "rpc.response.status_code") != "OK" {
		t.Errorf("%v", here.Attributes)
	}
	client.spans.Reset()
	if in, err = rpc.Open(t.Context(), c, count, wrapperspb.Int64(-1)); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if here := client.await("counter.Count"); attr(here, "rpc.response.status_code") != "CANCELED" {
		t.Errorf("%v", here.Attributes)
	}
}

// A call that the client's sampler leaves out is left out at the server, and the trace still
// continues.
func TestUnsampled(t *testing.T) {
	server := boot(t) // its sampler follows the parent's decision
	got := make(chan trace.SpanContext, 1)
	s := rpc.NewServer(server.rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{server.tr.Server()}})
	rpc.HandleRaw(s, greet, func(ctx context.Context, _, reply []byte) ([]byte, error) {
		got <- trace.SpanContextFromContext(ctx)
		return reply, nil
	})
	client := boot(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	c := client.dial(server.listen(s), rpc.ClientConfig{Interceptors: []rpc.Interceptor{client.tr.Client()}})
	ctx, span := client.tr.startSpan(t.Context(), "shop")
	if _, err := rpc.CallRaw(ctx, c, greet, nil, nil); err != nil {
		t.Fatal(err)
	}
	if sc := <-got; sc.TraceID() != span.SpanContext().TraceID() || sc.IsSampled() {
		t.Errorf("at the handler: %v", sc)
	}
	if s, has := server.ended()["greeter.Greet"]; has {
		t.Errorf("the server has a span: %v", s)
	}
}
