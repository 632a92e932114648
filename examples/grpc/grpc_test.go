package grpc_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rdmanet"
)

// slowly is a health service whose Check waits until its caller gives up, and records that.
type slowly struct {
	*health.Server
	begun atomic.Bool
	over  chan error
}

func (s *slowly) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if req.Service == "slow" {
		s.begun.Store(true)
		<-ctx.Done()
		s.over <- ctx.Err()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return s.Server.Check(ctx, req)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openRuntime opens a runtime on the embedded device and shuts it down after the test.
func openRuntime(tb testing.TB) *rdma.Runtime {
	tb.Helper()
	system := actor.NewActorSystem()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			tb.Error(err)
		}
		system.Shutdown()
	})
	return rt
}

// serveGRPC runs a gRPC server with a health service, and returns a client of it.
func serveGRPC(tb testing.TB) (srv *grpc.Server, s *slowly, client healthpb.HealthClient) {
	tb.Helper()
	l, err := rdmanet.Listen(tb.Context(), openRuntime(tb), "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	srv, s = grpc.NewServer(), &slowly{Server: health.NewServer(), over: make(chan error, 64)}
	healthpb.RegisterHealthServer(srv, s)
	go func() { _ = srv.Serve(l) }()
	d := rdmanet.NewDialer(openRuntime(tb))
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithContextDialer(d.Dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close()
		srv.Stop()
	})
	return srv, s, healthpb.NewHealthClient(conn)
}

// gRPC's own client and server: unary calls, a stream, deadlines that reach the server, errors, a
// graceful stop.
func TestGRPC(t *testing.T) {
	srv, s, client := serveGRPC(t)
	var p peer.Peer
	res, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Peer(&p))
	if err != nil || res.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v", res, err)
	}
	if _, ok := p.Addr.(*net.TCPAddr); !ok {
		t.Errorf("the peer is %T %v", p.Addr, p.Addr)
	}
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "unknown"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown service: %v", err)
	}

	stream, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "watched"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{
		healthpb.HealthCheckResponse_SERVICE_UNKNOWN, healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING,
	} {
		if want != healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
			s.SetServingStatus("watched", want)
		}
		if res, err := stream.Recv(); err != nil || res.Status != want {
			t.Fatalf("the stream says %v, %v, want %v", res, err, want)
		}
	}

	for d := 10 * time.Millisecond; !s.begun.Load(); d *= 2 { // until one call reaches the server
		ctx, cancel := context.WithTimeout(t.Context(), d)
		if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "slow"}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("behind its deadline: %v", err)
		}
		cancel()
	}
	if err := <-s.over; err == nil {
		t.Error("the server did not hear of the end")
	}

	srv.Stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("after the server's end: %v", err)
	}
}

// Many concurrent calls over one connection.
func TestGRPCConcurrentCalls(t *testing.T) {
	_, s, client := serveGRPC(t)
	errs := make(chan error, 50)
	for i := range 50 {
		name := fmt.Sprint("service ", i)
		s.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
		go func() {
			for range 20 {
				if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
