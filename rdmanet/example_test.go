package rdmanet_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rdmanet"
)

// The standard library's server and client over RDMA connections.
func Example_http() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())

	l, err := rdmanet.Listen(rt, "127.0.0.1:0", rdmanet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "you asked for %s", r.URL.Path)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	transport := &http.Transport{DialContext: rdmanet.NewDialer(rt, rdmanet.Config{}).DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	res, err := client.Get("http://" + l.Addr().String() + "/hello")
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Println(res.Status, string(body), err)
	// Output:
	// 200 OK you asked for /hello <nil>
}

// gRPC's server and client over RDMA connections, with gRPC's own health service.
func Example_grpc() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())

	l, err := rdmanet.Listen(rt, "127.0.0.1:0", rdmanet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	defer server.Stop()

	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithContextDialer(rdmanet.NewDialer(rt, rdmanet.Config{}).Dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	res, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(res.GetStatus(), err)
	// Output:
	// SERVING <nil>
}
