package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
)

// ErrNotAllowed has its own code, so callers find it with errors.Is.
var ErrNotAllowed = rpc.RegisterCode(301, "not allowed")

// Allowed refuses calls of methods that the caller's identity may not call: of those that are not
// named, all.
func Allowed(callers map[string][]string) rpc.Interceptor {
	return func(ctx context.Context, call *rpc.Info, next func(context.Context) error) error {
		if call.Identity == "" || !slices.Contains(callers[call.Method], call.Identity) {
			return fmt.Errorf("%q may not call this: %w", call.Identity, ErrNotAllowed)
		}
		return next(ctx)
	}
}

// A server that decides by identity and method. Each client has its own key.
func ExampleInfo_identity() {
	// A program reads them from files, which "rdmactor keygen" makes.
	keys := make(map[string]rdma.Credential)
	for _, name := range []string{"ann", "bob"} {
		c := rdma.Credential{Identity: name}
		copy(c.Key[:], name+"'s key, no secret in an example")
		keys[name] = c
	}
	system := actor.NewActorSystem()
	defer system.Shutdown()
	open := func(k *rdma.Keyring) *rdma.Runtime {
		rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New(), Security: &rdma.Security{Mode: rdma.PSK, Keys: k}})
		if err != nil {
			log.Fatal(err)
		}
		return rt
	}

	var accepted rdma.Keyring
	if err := accepted.Accept(keys["ann"], keys["bob"]); err != nil {
		log.Fatal(err)
	}
	there := open(&accepted)
	defer there.Shutdown(context.Background())
	server := rpc.NewServer(there, rpc.ServerConfig{Interceptors: []rpc.Interceptor{
		Allowed(map[string][]string{"text.Upper": {"ann"}}),
	}})
	rpc.Handle(server, Upper, func(ctx context.Context, q *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
		return wrapperspb.String(q.Value + " from " + rpc.InfoOf(ctx).Identity), nil
	})
	addr, err := server.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	for _, name := range []string{"ann", "bob"} {
		var own rdma.Keyring
		if err := own.Use(keys[name]); err != nil {
			log.Fatal(err)
		}
		here := open(&own)
		client, err := rpc.Dial(context.Background(), here, addr.String())
		if err != nil {
			log.Fatal(err)
		}
		reply, err := rpc.Call(context.Background(), client, Upper, wrapperspb.String("hello"))
		fmt.Println(reply.GetValue(), errors.Is(err, ErrNotAllowed), err)
		client.Close()
		here.Shutdown(context.Background())
	}
	// Output:
	// hello from ann false <nil>
	//  true rpc: text.Upper: not allowed: "bob" may not call this: rpc: not allowed
}
