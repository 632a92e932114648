package rpc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
)

// Compressed is a codec whose messages are compressed, and have at most Most bytes when they are
// not.
type Compressed struct {
	codec.Codec
	Most int64
}

// Append implements codec.Codec.
func (c Compressed) Append(dst []byte, msg any) (string, []byte, error) {
	name, plain, err := c.Codec.Append(nil, msg)
	if err != nil {
		return "", dst, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(plain)
	if err = errors.Join(err, w.Close()); err != nil {
		return "", dst, err
	}
	return name, append(dst, b.Bytes()...), nil
}

// Decode implements codec.Codec. It reads no more than Most bytes, whatever the peer has
// compressed.
func (c Compressed) Decode(name string, body []byte) (any, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, c.Most+1))
	if err == nil && int64(len(plain)) > c.Most {
		err = rpc.ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	return c.Codec.Decode(name, plain)
}

// A method whose messages are compressed: both sides have the same codec.
func ExampleMethodConfig_codec() {
	repeat := rpc.NewMethod[wrapperspb.Int64Value, wrapperspb.StringValue]("text.Repeat", rpc.MethodConfig{
		Codec: Compressed{codec.New(), 1 << 20},
	})
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
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
	client := rpc.NewClient(rt, at.String(), rpc.ClientConfig{MaxMessage: 64 << 10})
	defer client.Close()

	// in a message of less than 64 KiB
	text, err := rpc.Call(context.Background(), client, repeat, wrapperspb.Int64(200_000))
	fmt.Println(len(text.GetValue()), err)
	_, err = rpc.Call(context.Background(), client, repeat, wrapperspb.Int64(2_000_000))
	fmt.Println(errors.Is(err, rpc.ErrBadMessage), errors.Is(err, rpc.ErrTooLarge))
	// Output:
	// 800000 <nil>
	// true true
}
