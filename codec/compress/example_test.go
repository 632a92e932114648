package compress_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/codec/compress"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
)

// A method whose messages are compressed. Both sides use this variable, and so the same codec.
var repeat = rpc.NewMethod[wrapperspb.Int64Value, wrapperspb.StringValue]("text.Repeat", rpc.MethodConfig{
	Codec: compress.New(codec.New()),
})

func Example() {
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())
	server := rpc.NewServer(rt)
	defer server.Close()
	rpc.Handle(server, repeat, func(_ context.Context, n *wrapperspb.Int64Value) (*wrapperspb.StringValue, error) {
		return wrapperspb.String(strings.Repeat("rdma", int(n.Value))), nil
	})
	at, err := server.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	// the limit of the client counts compressed bytes
	client := rpc.NewClient(rt, at.String(), rpc.ClientConfig{MaxMessage: 64 << 10})
	defer client.Close()

	text, err := rpc.Call(context.Background(), client, repeat, wrapperspb.Int64(200_000))
	fmt.Println(len(text.GetValue()), err)
	// Output: 800000 <nil>
}
