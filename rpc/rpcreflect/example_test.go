package rpcreflect_test

import (
	"context"
	"fmt"
	"log"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpchealth"
	"github.com/rdmactor/rdmactor/rpc/rpcreflect"
)

// A client asks a server for its methods, and for the messages of one of them.
func Example() {
	ctx := context.Background()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(ctx)

	server := rpc.NewServer(rt)
	rpchealth.Register(server)
	rpcreflect.Register(server)
	addr, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client := rpc.NewClient(rt, addr.String())
	defer client.Close()
	methods, err := rpcreflect.List(ctx, client)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(methods)
	method, err := rpcreflect.Find(ctx, client, "grpc.health.v1.Health/Check")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(method.Input().FullName(), "->", method.Output().FullName())
	// Output:
	// [grpc.health.v1.Health/Check grpc.health.v1.Health/Watch]
	// grpc.health.v1.HealthCheckRequest -> grpc.health.v1.HealthCheckResponse
}
