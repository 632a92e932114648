package main

import (
	"context"
	"errors"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/rpc"
)

var echoMethod = rpc.NewRawMethod("bench.Echo")

// serveRPC answers on goroutines, as all the others do. serveRPCOnLoop answers on the loop.
func serveRPC(e measure.Entry) (measure.Service, error) {
	return listenRPC(e, echoCall, rpc.HandlerConfig{})
}

func serveRPCOnLoop(e measure.Entry) (measure.Service, error) {
	return listenRPC(e, echoCall, rpc.HandlerConfig{OnLoop: true})
}

func echoCall(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }

type rawHandler = func(ctx context.Context, q, reply []byte) ([]byte, error)

func listenRPC(e measure.Entry, h rawHandler, on rpc.HandlerConfig, cfg ...rpc.ServerConfig) (measure.Service, error) {
	return startServer(e, func(s *rpc.Server) { rpc.HandleRaw(s, echoMethod, h, on) }, cfg...)
}

// startServer starts a server with the handlers that register sets.
func startServer(e measure.Entry, register func(*rpc.Server), cfg ...rpc.ServerConfig) (measure.Service, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return nil, err
	}
	s := rpc.NewServer(w.RT, cfg...)
	register(s)
	addr, err := s.Listen(context.Background(), contest.Loopback)
	return measure.NewService(addr.String(), func() error {
		s.Close()
		return w.Close()
	}), err
}

// connectClient connects to a server, and gives up after a while.
func connectClient(w contest.World, addr string) (*rpc.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return rpc.Dial(ctx, w.RT, addr)
}

func dialRPC(addr string, e measure.Entry) (contest.Tripper, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return nil, err
	}
	calls, err := dialIn(w, addr)
	end := calls.CloseFunc
	calls.CloseFunc = func() error { return errors.Join(end(), w.Close()) }
	return calls, err
}

// dialIn makes a client in a runtime that it does not close.
func dialIn(w contest.World, addr string) (contest.Calls, error) {
	c, err := connectClient(w, addr)
	return contest.Calls{
		CallFunc: func(p, room []byte) ([]byte, error) {
			return rpc.CallRaw(context.Background(), c, echoMethod, p, room[:0])
		},
		CloseFunc: func() error {
			c.Close()
			return nil
		},
	}, err
}
