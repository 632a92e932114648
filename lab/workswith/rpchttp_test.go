package workswith

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"
	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/orders"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpchttp"
)

type text = wrapperspb.StringValue

// serveOrders serves test.Orders over rpc, and over HTTP at the address that it returns: Connect's
// protocol itself, gRPC's through vanguard. intercepted counts the calls of the server's
// interceptor.
func serveOrders(t *testing.T) (addr string, intercepted *atomic.Int64) {
	t.Helper()
	intercepted = new(atomic.Int64)
	log := slog.New(slog.DiscardHandler)
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{
		func(ctx context.Context, _ *rpc.Info, next func(context.Context) error) error {
			intercepted.Add(1)
			return next(ctx)
		},
	}})
	handleOrders(s)
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := rpc.NewClient(rt, at.String())
	h, err := rpchttp.New(c, rpchttp.Config{}, "test.Orders")
	if err != nil {
		t.Fatal(err)
	}
	all, err := vanguard.NewTranscoder([]*vanguard.Service{vanguard.NewService("test.Orders", h,
		vanguard.WithTargetProtocols(vanguard.ProtocolConnect), vanguard.WithTargetCodecs(vanguard.CodecProto), vanguard.WithNoTargetCompression())})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: all, Protocols: both}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() {
		_ = web.Close()
		c.Close()
		s.Close()
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
	})
	return l.Addr().String(), intercepted
}

func handleOrders(s *rpc.Server) {
	rpc.Handle(s, orders.Get, func(ctx context.Context, q *text) (*text, error) {
		if q.Value == "slow" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return q, nil
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
}

// connect-go's client calls an rpc server's methods of all kinds, in protobuf and in JSON.
func TestConnectClientOfRPC(t *testing.T) {
	addr, intercepted := serveOrders(t)
	http2 := new(http.Protocols)
	http2.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: http2}
	defer transport.CloseIdleConnections()
	for name, opts := range map[string][]connect.ClientOption{"proto": nil, "JSON": {connect.WithProtoJSON()}} {
		t.Run(name, func(t *testing.T) {
			client := func(method string) *connect.Client[text, text] {
				return connect.NewClient[text, text](&http.Client{Transport: transport}, "http://"+addr+"/test.Orders/"+method, opts...)
			}
			callOrders(t, client)
		})
	}
	if n := intercepted.Load(); n != 10 {
		t.Errorf("the server's interceptor has seen %d calls", n)
	}
}

func callOrders(t *testing.T, client func(method string) *connect.Client[text, text]) {
	t.Helper()
	ctx := t.Context()
	if r, err := client("Get").CallUnary(ctx, connect.NewRequest(wrapperspb.String("tea"))); err != nil || r.Msg.Value != "tea" {
		t.Errorf("Get: %v, %v", r, err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := client("Get").CallUnary(short, connect.NewRequest(wrapperspb.String("slow"))); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("a slow handler: %v", err)
	}
	if _, err := client("Nothing").CallUnary(ctx, connect.NewRequest(wrapperspb.String(""))); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("an unknown method: %v", err)
	}
	down, err := client("Watch").CallServerStream(ctx, connect.NewRequest(wrapperspb.String("a b c")))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for down.Receive() {
		got += down.Msg().Value
	}
	if err := errors.Join(down.Err(), down.Close()); err != nil || got != "abc" {
		t.Errorf("Watch: %q, %v", got, err)
	}
	up := client("Put").CallClientStream(ctx)
	for _, item := range []string{"x", "y"} {
		if err := up.Send(wrapperspb.String(item)); err != nil {
			t.Error(err)
		}
	}
	if r, err := up.CloseAndReceive(); err != nil || r.Msg.Value != "xy" {
		t.Errorf("Put: %v, %v", r, err)
	}
	talk := client("Talk").CallBidiStream(ctx)
	for _, item := range []string{"1", "2"} {
		if err := talk.Send(wrapperspb.String(item)); err != nil {
			t.Error(err)
		}
		if m, err := talk.Receive(); err != nil || m.Value != item {
			t.Errorf("Talk: %v, %v", m, err)
		}
	}
	if err := talk.CloseRequest(); err != nil {
		t.Error(err)
	}
	if _, err := talk.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("Talk ends with %v", err)
	}
	_ = talk.CloseResponse()
}

// A gRPC client calls the same methods through vanguard.
func TestGRPCClientOfRPC(t *testing.T) {
	addr, _ := serveOrders(t)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var r text
	if err := conn.Invoke(t.Context(), "/test.Orders/Get", wrapperspb.String("tea"), &r); err != nil || r.Value != "tea" {
		t.Errorf("%v, %v", &r, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := conn.Invoke(ctx, "/test.Orders/Get", wrapperspb.String("slow"), &r); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a slow handler: %v", err)
	}
}
