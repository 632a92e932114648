package main

import (
	"context"
	"time"

	"github.com/cloudwego/netpoll"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

func serveNetpoll(measure.Entry) (measure.Service, error) {
	l, err := netpoll.CreateListener("tcp", contest.Loopback)
	if err != nil {
		return nil, err
	}
	loop, err := netpoll.NewEventLoop(func(_ context.Context, c netpoll.Connection) error {
		for r, w := c.Reader(), c.Writer(); r.Len() >= contest.PayloadSize; {
			p, err := r.Next(contest.PayloadSize)
			if err != nil {
				return err
			}
			to, err := w.Malloc(contest.PayloadSize)
			if err != nil {
				return err
			}
			copy(to, p)
			if err := r.Release(); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- loop.Serve(l) }()
	return measure.NewService(l.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = loop.Shutdown(ctx) // it waits until its clients have closed their connections
		return <-ended
	}), nil
}

func dialNetpoll(addr string, _ measure.Entry) (contest.Tripper, error) {
	c, err := netpoll.DialConnection("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return contest.Serial{Tripper: contest.Calls{
		CallFunc: func(p, room []byte) ([]byte, error) {
			w, r := c.Writer(), c.Reader()
			to, err := w.Malloc(len(p))
			if err != nil {
				return nil, err
			}
			copy(to, p)
			if err := w.Flush(); err != nil {
				return nil, err
			}
			got, err := r.Next(len(p))
			if err != nil {
				return nil, err
			}
			copy(room, got)
			return room, r.Release()
		},
		CloseFunc: c.Close,
	}}, nil
}
