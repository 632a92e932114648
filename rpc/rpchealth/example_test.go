package rpchealth_test

import (
	"context"
	"fmt"
	"log"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpchealth"
)

// A server reports that one of its services does not serve at present.
func Example() {
	ctx := context.Background()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(ctx)

	server := rpc.NewServer(rt)
	health := rpchealth.Register(server)
	health.Set("shop.Orders", false) // while its database is away
	addr, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client := rpc.NewClient(rt, addr.String())
	defer client.Close()
	for _, service := range []string{"", "shop.Orders"} {
		serving, err := rpchealth.Check(ctx, client, service)
		fmt.Printf("%q: %v, %v\n", service, serving, err)
	}
	// Output:
	// "": true, <nil>
	// "shop.Orders": false, <nil>
}
