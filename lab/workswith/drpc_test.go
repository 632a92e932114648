package workswith

import (
	"context"
	"errors"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmux"
	"storj.io/drpc/drpcserver"
)

// protobuf is drpc's Encoding of protobuf's messages.
type protobuf struct{}

func (protobuf) Marshal(m drpc.Message) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }
func (protobuf) Unmarshal(b []byte, m drpc.Message) error {
	return proto.Unmarshal(b, m.(proto.Message))
}

// echoes is what drpc's generator makes of a service with one unary method.
type echoes struct{}

func (echoes) NumMethods() int { return 1 }

func (echoes) Method(n int) (rpc string, enc drpc.Encoding, receiver drpc.Receiver, method any, ok bool) {
	return "/echo", protobuf{}, receive, echoes.Echo, n == 0
}

func (echoes) Echo(_ context.Context, m *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	if m.Value == "" {
		return nil, errors.New("empty")
	}
	return m, nil
}

func receive(srv any, ctx context.Context, in, _ any) (drpc.Message, error) {
	return srv.(echoes).Echo(ctx, in.(*wrapperspb.StringValue))
}

// drpc's client and server: calls one after the other, and an error.
func TestDRPC(t *testing.T) {
	l, d := listen(t)
	mux := drpcmux.New()
	if err := mux.Register(echoes{}, echoes{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var server sync.WaitGroup
	server.Go(func() { _ = drpcserver.New(mux).Serve(ctx, l) })
	defer server.Wait()
	defer stop()
	c, err := d.DialContext(t.Context(), "", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := drpcconn.New(c)
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 100 {
		out := new(wrapperspb.StringValue)
		if err := conn.Invoke(t.Context(), "/echo", protobuf{}, wrapperspb.String("hello"), out); err != nil || out.Value != "hello" {
			t.Fatalf("%v, %v", out, err)
		}
	}
	if err := conn.Invoke(t.Context(), "/echo", protobuf{}, wrapperspb.String(""), new(wrapperspb.StringValue)); err == nil {
		t.Error("an empty text was answered")
	}
}
