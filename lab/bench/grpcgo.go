package main

import (
	"context"
	"fmt"
	"net"
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// rawCodec passes bytes on: messages are *[]byte. So grpc-go need not encode protobuf messages.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	p, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("%T is no *[]byte", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*p)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	p, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is no *[]byte", v)
	}
	*p = data.Materialize()
	return nil
}

const grpcMethod = "/bench.Echo/Echo"

// echoDesc is the description that protoc would generate, without protobuf.
var echoDesc = grpc.ServiceDesc{
	ServiceName: "bench.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Echo",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			p := new([]byte)
			return p, decode(p)
		},
	}},
	Streams: []grpc.StreamDesc{grpcTalk},
}

func serveGRPC(measure.Entry) (measure.Service, error) {
	l, err := net.Listen("tcp", contest.Loopback)
	if err != nil {
		return measure.Service{}, err
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))))
	s.RegisterService(&echoDesc, nil)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	return measure.Service{Addr: l.Addr().String(), Close: func() error {
		s.Stop()
		return <-ended
	}}, nil
}

func dialGRPC(addr string, _ measure.Entry) (contest.Calls, error) {
	c, err := newGRPC(addr)
	if err != nil {
		return contest.Calls{}, err
	}
	return contest.Calls{
		Call: func(p, _ []byte) (got []byte, err error) {
			err = c.Invoke(context.Background(), grpcMethod, &p, &got)
			return got, err
		},
		Close: c.Close,
	}, nil
}

func newGRPC(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig())
}
