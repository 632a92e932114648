package main

import (
	"context"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/rpc"
)

// One method of protobuf messages is called in two ways: by the code that protoc-gen-go-rdmactor
// generates, and by package rpc's functions with a method that is declared by hand.

const (
	generated = "rpc-generated"
	written   = "rpc-written"
)

var writtenGet = rpc.NewMethod[kv.GetRequest, kv.Entry]("bench.Get")

// echoStore returns each key as its value.
type echoStore struct{ kv.UnimplementedStoreServer }

func (echoStore) Get(_ context.Context, q *kv.GetRequest) (*kv.Entry, error) {
	return &kv.Entry{Value: []byte(q.Key)}, nil
}

func serveGenerated(e measure.Entry) (measure.Service, error) {
	return startServer(e, func(s *rpc.Server) { kv.RegisterStoreServer(s, echoStore{}) })
}

func serveWritten(e measure.Entry) (measure.Service, error) {
	return startServer(e, func(s *rpc.Server) { rpc.Handle(s, writtenGet, echoStore{}.Get) })
}

type getter = func(ctx context.Context, q *kv.GetRequest) (*kv.Entry, error)

func dialGenerated(addr string, e measure.Entry) (contest.Tripper, error) {
	return dialGet(addr, e, func(c *rpc.Client) getter {
		s := kv.NewStoreClient(c)
		return func(ctx context.Context, q *kv.GetRequest) (*kv.Entry, error) { return s.Get(ctx, q) }
	})
}

func dialWritten(addr string, e measure.Entry) (contest.Tripper, error) {
	return dialGet(addr, e, func(c *rpc.Client) getter {
		return func(ctx context.Context, q *kv.GetRequest) (*kv.Entry, error) {
			return rpc.Call(ctx, c, writtenGet, q)
		}
	})
}

func dialGet(addr string, e measure.Entry, getterOf func(*rpc.Client) getter) (contest.Tripper, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return nil, err
	}
	c, err := connectClient(w, addr)
	if err != nil {
		return nil, err
	}
	get := getterOf(c)
	return contest.Calls{
		CallFunc: func(p, _ []byte) ([]byte, error) {
			r, err := get(context.Background(), &kv.GetRequest{Key: string(p)})
			return r.GetValue(), err
		},
		CloseFunc: func() error {
			c.Close()
			return w.Close()
		},
	}, nil
}
