package main

import (
	"context"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

var echoMethod = rpc.NewRawMethod("bench.Echo")

type rpcService struct {
	world
	*rpc.Server
	addr string
}

func (s rpcService) Addr() string { return s.addr }

func (s rpcService) Close() error {
	s.Server.Close()
	return s.world.Close()
}

// serveRPC answers on goroutines, as all the others do; serveRPCOnLoop without.
func serveRPC(e entry) (service, error) { return listenRPC(e, echoCall, nil) }

func serveRPCOnLoop(e entry) (service, error) {
	return listenRPC(e, echoCall, []rpc.HandlerOption{rpc.OnLoop()})
}

func echoCall(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }

type rawHandler = func(ctx context.Context, q, reply []byte) ([]byte, error)

func listenRPC(e entry, h rawHandler, on []rpc.HandlerOption, opts ...rpc.ServerOption) (service, error) {
	w, err := openWorld(e)
	if err != nil {
		return nil, err
	}
	s := rpc.NewServer(w.rt, opts...)
	rpc.HandleRaw(s, echoMethod, h, on...)
	addr, err := s.Listen(context.Background(), loopback)
	return rpcService{w, s, addr.String()}, err
}

// openRPC connects.
func openRPC(addr string, e entry) (world, *rpc.Client, error) {
	w, err := openWorld(e)
	if err != nil {
		return w, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := rpc.Dial(ctx, w.rt, addr)
	return w, c, err
}

func dialRPC(addr string, e entry) (tripper, error) {
	w, c, err := openRPC(addr, e)
	if err != nil {
		return nil, err
	}
	return blocking{
		call: func(p, room []byte) error {
			got, err := rpc.CallRaw(context.Background(), c, echoMethod, p, room[:0])
			if err != nil {
				return err
			}
			return echoed(got, p)
		},
		close: func() error {
			c.Close()
			return w.Close()
		},
	}, nil
}
