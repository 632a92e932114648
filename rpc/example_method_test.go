package rpc_test

import (
	"context"
	"fmt"
	"log"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
)

// Args are encoded as JSON, as they are neither protobuf's nor encode themselves.
type Args struct{ A, B int }

var Add = rpc.NewMethod[Args, int]("math.Add", rpc.MethodConfig{Idempotent: true})

// A method of Go structs, without generated code. docs/rpc.md begins with it.
func ExampleNewMethod() {
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer rt.Shutdown(ctx)

	server := rpc.NewServer(rt)
	rpc.Handle(server, Add, func(_ context.Context, q *Args) (*int, error) {
		sum := q.A + q.B
		return &sum, nil
	})
	addr, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown(ctx)

	client := rpc.NewClient(rt, addr.String())
	defer client.Close()
	sum, err := rpc.Call(ctx, client, Add, &Args{2, 3})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*sum)
	// Output: 5
}
