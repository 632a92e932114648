package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/orders"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpchealth"
	"github.com/rdmactor/rdmactor/rpc/rpcreflect"
)

// serveOrders serves test.Orders, and returns its address.
func serveOrders(t *testing.T, reflects bool, more ...func(s *rpc.Server)) string {
	t.Helper()
	return serveSecured(t, nil, reflects, more...)
}

// serveSecured calls serveOrders with secured connections.
func serveSecured(t *testing.T, security *rdma.Security, reflects bool, more ...func(s *rpc.Server)) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Logger: log, Security: security})
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(rt)
	type text = wrapperspb.StringValue
	rpc.Handle(s, orders.Get, func(ctx context.Context, q *text) (*text, error) {
		if q.Value == "sold out" {
			return nil, &rpc.Error{Code: rpc.CodeUnknown, Message: "sold out"}
		}
		who, _ := rpc.Metadata(ctx, "user")
		return wrapperspb.String(q.Value + who), nil
	})
	rpc.HandleStream(s, orders.Watch, func(_ context.Context, q *text, out *rpc.Sender[text]) error {
		for _, item := range strings.Fields(q.Value) {
			if err := out.Send(wrapperspb.String(item)); err != nil {
				return err
			}
		}
		return nil
	})
	rpc.HandleClientStream(s, orders.Put, func(_ context.Context, in *rpc.Receiver[text]) (*text, error) {
		all := ""
		for item, err := range in.All() {
			if err != nil {
				return nil, err
			}
			all += item.Value
		}
		return wrapperspb.String(all), nil
	})
	rpc.HandleBidiStream(s, orders.Talk, func(_ context.Context, in *rpc.Receiver[text], out *rpc.Sender[text]) error {
		for item, err := range in.All() {
			if err == nil {
				err = out.Send(item)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if reflects {
		rpcreflect.Register(s)
	}
	for _, register := range more {
		register(s)
	}
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
	})
	return at.String()
}

// A server that describes its methods can be called by hand, methods of all kinds.
func TestCallByHand(t *testing.T) {
	addr := serveOrders(t, true)
	for _, tt := range []struct {
		args []string
		want string // the output, or a part of the error
	}{
		{[]string{"list", addr}, "test.Orders/Get\ntest.Orders/Put\ntest.Orders/Talk\ntest.Orders/Watch\n"},
		{[]string{"call", addr, "test.Orders/Get", `"tea"`}, "\"tea\"\n"},
		{[]string{"call", addr, "test.Orders/Get"}, "\"\"\n"},
		{[]string{"call", addr, "test.Orders/Get", `"tea "`, "-H", "user: ann"}, "\"tea ann\"\n"},
		{[]string{"call", addr, "test.Orders/Get", `"sold out"`}, "sold out"},
		{[]string{"call", addr, "test.Orders/Get", `tea`}, "the request is no JSON"},
		{[]string{"call", addr, "test.Orders/Get", `7`}, "the request is no google.protobuf.StringValue"},
		{[]string{"call", addr, "test.Orders/Nothing"}, "no protobuf service describes it"},
		{[]string{"call", addr, "test.Nothing/Get"}, "no protobuf service describes it"},
		{[]string{"call", addr, "test.Orders/Watch", `"a b"`}, "\"a\"\n\"b\"\n"},
		{[]string{"call", addr, "test.Orders/Put", `"a" "b"`}, "\"ab\"\n"},
		{[]string{"call", addr, "test.Orders/Talk", `"a" "b"`}, "\"a\"\n\"b\"\n"},
		{[]string{"call", addr}, "which method?"},
		{[]string{"probe"}, "which server?"},
		{[]string{"call"}, "which server?"},
		{[]string{"bench", addr, "test.Orders/Watch"}, "is a stream"},
		{[]string{"bench", addr, "test.Orders/Get", "--rate", "0"}, "greater than 0"},
	} {
		var out bytes.Buffer
		err := runCommand(t.Context(), tt.args, &out, io.Discard)
		if err == nil && out.String() != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("rdmactor %v: %q, %v", tt.args, out.String(), err)
		}
	}
}

// A probe sees whether a server takes calls.
func TestProbe(t *testing.T) {
	addr := serveOrders(t, false)
	if err := runCommand(t.Context(), []string{"probe", addr}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	if err := runCommand(t.Context(), []string{"probe", "127.0.0.1:1"}, io.Discard, io.Discard); !errors.Is(err, unix.ECONNREFUSED) ||
		!strings.Contains(err.Error(), "no server listens at 127.0.0.1:1: start it") {
		t.Errorf("nobody listens: %v", err)
	}
}

// A user who mistakes another server for an rpc server, or whose server is cut off, learns what to
// check.
func TestCallOfAnotherServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = runCommand(t.Context(), []string{"list", l.Addr().String(), "--timeout", "300ms"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "does not answer within 300ms") || !strings.Contains(err.Error(), "check the address") {
		t.Error(err)
	}
}

// A probe asks a server with a health service whether it serves.
func TestProbeOfHealth(t *testing.T) {
	var health *rpchealth.Health
	addr := serveOrders(t, true, func(s *rpc.Server) { health = rpchealth.Register(s) })
	health.Set("test.Orders", false)
	for service, want := range map[string]string{"": "", "test.Orders": "does not serve test.Orders", "test.Nothing": "no health of this service"} {
		err := runCommand(t.Context(), []string{"probe", addr, "--service", service}, io.Discard, io.Discard)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", service, err, want)
		}
	}
	var out bytes.Buffer // the service can be called by hand, too
	if err := runCommand(t.Context(), []string{"call", addr, "grpc.health.v1.Health/Check", `{"service": "test.Orders"}`}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "NOT_SERVING") {
		t.Errorf("%q, %v", out.String(), err)
	}
	health.Set("", false)
	if err := runCommand(t.Context(), []string{"probe", addr}, io.Discard, io.Discard); err == nil {
		t.Error("a server that does not serve is healthy")
	}
	if err := runCommand(t.Context(), []string{"probe", addr, "--alive"}, io.Discard, io.Discard); err != nil {
		t.Errorf("a server that does not serve is not alive: %v", err)
	}
	if err := runCommand(t.Context(), []string{"probe", "127.0.0.1:1", "--alive"}, io.Discard, io.Discard); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("no server is alive: %v", err)
	}
}

// The error of a server without descriptions names the call that it lacks.
func TestCallWithoutReflection(t *testing.T) {
	addr := serveOrders(t, false)
	for _, args := range [][]string{{"list", addr}, {"call", addr, "test.Orders/Get"}} {
		if err := runCommand(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "rpcreflect.Register") {
			t.Errorf("rdmactor %v: %v", args, err)
		}
	}
}

// Calls begin at the rate that was asked for; those that fail are counted by their code.
func TestBenchByHand(t *testing.T) {
	addr := serveOrders(t, true)
	for request, want := range map[string]string{`"tea"`: "100 answered", `"sold out"`: "100 failed: UNKNOWN, answered"} {
		var out bytes.Buffer
		if err := runCommand(t.Context(), []string{"bench", addr, "test.Orders/Get", request, "--rate", "500", "--duration", "200ms"}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: want %s in\n%s", request, want, out.String())
		}
	}
}
