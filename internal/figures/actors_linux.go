package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

func openRuntime(opts ...rdma.Option) (*rdma.Runtime, *actor.ActorSystem, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	rt, err := rdma.Open(system, append([]rdma.Option{rdma.WithDevice(iwarp.New()), rdma.WithLogger(log)}, opts...)...)
	return rt, system, err
}

// serve accepts everybody and prints its address, until it is told to stop. handle sees every message too.
func serve(handle actor.ReceiveFunc, id []rdma.IDOption, opts ...rdma.Option) error {
	rt, system, err := openRuntime(opts...)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(rt.CreateID(ctx.Self(), id...), &rdma.Serve{Addr: "127.0.0.1:0"})
		case *rdma.Listening:
			fmt.Println(m.Local)
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case rdma.Failure:
			if _, listening := m.Failed().(*rdma.Serve); listening { // else one of many peers has gone
				failed <- m
			}
		}
		handle(ctx)
	}, rt.OnLoop()))
	return waitFor(failed)
}

// waitFor waits for the end of the pair, or a failure.
func waitFor(failed <-chan error) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// dial makes one connection and returns when it is closed, or handle or the connection has failed. handle sees every message too.
func dial(addr string, handle func(ctx actor.Context) error, id []rdma.IDOption, opts ...rdma.Option) error {
	rt, system, err := openRuntime(opts...)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	end := func(err error) {
		select {
		case done <- err:
		default: // it is over already
		}
	}
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(rt.CreateID(ctx.Self(), id...), &rdma.Dial{Addr: addr})
		case *rdma.Closed:
			end(m.Err)
			return
		case rdma.Failure:
			end(m)
			return
		}
		if err := handle(ctx); err != nil {
			end(err)
		}
	}, rt.OnLoop()))
	if err := <-done; err != nil {
		return err
	}
	return rt.Shutdown(context.Background())
}
