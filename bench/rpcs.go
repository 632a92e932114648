package main

import (
	"context"
	"time"

	"github.com/rdmactor/rdmactor/internal/measure"
	"github.com/rdmactor/rdmactor/internal/measure/contest"
	"github.com/rdmactor/rdmactor/rpc"
)

var echoMethod = rpc.NewRawMethod("bench.Echo")

type rpcService struct {
	contest.World
	*rpc.Server
	addr string
}

func (s rpcService) Addr() string { return s.addr }

func (s rpcService) Close() error {
	s.Server.Close()
	return s.World.Close()
}

// serveRPC answers on goroutines, as all the others do; serveRPCOnLoop without.
func serveRPC(e measure.Entry) (measure.Service, error) { return listenRPC(e, echoCall, nil) }

func serveRPCOnLoop(e measure.Entry) (measure.Service, error) {
	return listenRPC(e, echoCall, []rpc.HandlerOption{rpc.OnLoop()})
}

func echoCall(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }

type rawHandler = func(ctx context.Context, q, reply []byte) ([]byte, error)

func listenRPC(e measure.Entry, h rawHandler, on []rpc.HandlerOption, opts ...rpc.ServerOption) (measure.Service, error) {
	w, err := contest.OpenWorld(e)
	if err != nil {
		return nil, err
	}
	s := rpc.NewServer(w.RT, opts...)
	rpc.HandleRaw(s, echoMethod, h, on...)
	addr, err := s.Listen(context.Background(), contest.Loopback)
	return rpcService{w, s, addr.String()}, err
}

// openRPC connects.
func openRPC(addr string, e measure.Entry) (contest.World, *rpc.Client, error) {
	w, err := contest.OpenWorld(e)
	if err != nil {
		return w, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := rpc.Dial(ctx, w.RT, addr)
	return w, c, err
}

func dialRPC(addr string, e measure.Entry) (contest.Tripper, error) {
	w, c, err := openRPC(addr, e)
	if err != nil {
		return nil, err
	}
	return contest.Calls{
		CallFunc: func(p, room []byte) error {
			got, err := rpc.CallRaw(context.Background(), c, echoMethod, p, room[:0])
			if err != nil {
				return err
			}
			return contest.Echoed(got, p)
		},
		CloseFunc: func() error {
			c.Close()
			return w.Close()
		},
	}, nil
}
