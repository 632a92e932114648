package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
)

// Methods and errors that a client and a server share.
var (
	Upper    = rpc.NewMethod[wrapperspb.StringValue, wrapperspb.StringValue]("text.Upper", rpc.MethodConfig{Idempotent: true})
	Words    = rpc.NewStream[wrapperspb.StringValue, wrapperspb.StringValue]("text.Words")
	Reverse  = rpc.NewRawMethod("text.Reverse")
	ErrEmpty = rpc.RegisterCode(300, "there is no text")
)

// A server with a call, a stream and a call of bytes, and a client of each.
func Example() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())

	server := rpc.NewServer(rt, rpc.ServerConfig{MaxCallsInAll: 1000})
	rpc.Handle(server, Upper, func(_ context.Context, q *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
		if q.Value == "" {
			return nil, fmt.Errorf("upper: %w", ErrEmpty)
		}
		return wrapperspb.String(strings.ToUpper(q.Value)), nil
	})
	rpc.HandleStream(server, Words, func(_ context.Context, q *wrapperspb.StringValue, out *rpc.Sender[wrapperspb.StringValue]) error {
		for word := range strings.FieldsSeq(q.Value) {
			if err := out.Send(wrapperspb.String(word)); err != nil {
				return err
			}
		}
		return nil
	})
	rpc.HandleRaw(server, Reverse, func(_ context.Context, q, reply []byte) ([]byte, error) {
		for i := range q {
			reply = append(reply, q[len(q)-1-i])
		}
		return reply, nil
	}, rpc.HandlerConfig{OnLoop: true})
	addr, err := server.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := rpc.Dial(ctx, rt, addr.String(), rpc.ClientConfig{Retry: rpc.Retry{Attempts: 3}})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := rpc.Call(ctx, client, Upper, wrapperspb.String("hello"))
	fmt.Println(reply.GetValue(), err)
	_, err = rpc.Call(ctx, client, Upper, wrapperspb.String(""))
	fmt.Println(errors.Is(err, ErrEmpty), err)
	words, err := rpc.Open(ctx, client, Words, wrapperspb.String("one after another"))
	if err != nil {
		log.Fatal(err)
	}
	for word, err := range words.All() {
		fmt.Println(word.GetValue(), err)
	}
	backwards, err := rpc.CallRaw(ctx, client, Reverse, []byte("stressed"), nil)
	fmt.Println(string(backwards), err)

	client.Close()
	if err := server.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// HELLO <nil>
	// true rpc: text.Upper: there is no text: upper: rpc: there is no text
	// one <nil>
	// after <nil>
	// another <nil>
	// desserts <nil>
}
