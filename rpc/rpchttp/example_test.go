package rpchttp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpchealth"
	"github.com/rdmactor/rdmactor/rpc/rpchttp"
)

// The health service of an rpc server, called over HTTP with JSON.
func Example() {
	ctx := context.Background()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(ctx)

	server := rpc.NewServer(rt)
	rpchealth.Register(server)
	addr, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client := rpc.NewClient(rt, addr.String())
	defer client.Close()
	handler, err := rpchttp.New(client, rpchttp.Config{}, "grpc.health.v1.Health")
	if err != nil {
		log.Fatal(err)
	}
	site := httptest.NewServer(handler)
	defer site.Close()

	res, err := http.Post(site.URL+"/grpc.health.v1.Health/Check", "application/json", strings.NewReader(`{}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Println(string(body), err)
	// Output: {"status":"SERVING"} <nil>
}
