package main

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

const (
	talkConns  = 64
	talkWindow = 16 // messages in flight on each connection
)

// serveLoops starts a server with a handler for each connection, which echoes on the connection's
// loop.
func serveLoops(e measure.Entry) (measure.Service, error) {
	handler := actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
		}
	})
	return contest.ServeActors(e, func(actor.Context) {}, rdma.IDConfig{Handler: handler})
}

// talk is one run. Every owner keeps a window of messages in flight, and sends each again when it
// returns.
type talk struct {
	over atomic.Bool
	n    atomic.Int64
}

type talkClient struct {
	contest.World
	owners []*actor.PID
	ended  chan error
}

func dialTalk(addr string, e measure.Entry) (measure.Client, error) {
	w, err := contest.OpenWorld(atClient(e), rdma.Config{})
	if err != nil {
		return nil, err
	}
	c := &talkClient{World: w, ended: make(chan error, 2*talkConns)}
	for range talkConns {
		c.owners = append(c.owners, w.Spawn(c.ended, c.connOwner(addr)))
	}
	var established atomic.Int64
	_, err = sampleOf(time.Now(), c.ended, talkConns, &established)
	return c, err
}

// connOwner returns an actor with one connection.
func (c *talkClient) connOwner(addr string) actor.ReceiveFunc {
	var id *actor.PID
	var run *talk
	var got int64
	way := 0 // number of messages in flight
	payload := make([]byte, contest.PayloadSize)
	return func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			id = c.RT.CreateID(ctx.Self())
			ctx.Request(id, &rdma.Dial{Addr: addr})
		case *rdma.Established:
			c.ended <- nil
		case *talk:
			run, got, way = m, 0, talkWindow
			for range talkWindow {
				ctx.Request(id, rdma.NewSend(payload))
			}
		case *rdma.Received:
			got++
			if !run.over.Load() {
				ctx.Request(id, rdma.NewSend(m.Data))
			} else if way--; way == 0 {
				run.n.Add(got)
				c.ended <- nil
			}
		}
	}
}

func (c *talkClient) Run(d time.Duration) (measure.Sample, error) {
	run := new(talk)
	begun := time.Now()
	for _, owner := range c.owners {
		c.System.Root.Send(owner, run)
	}
	defer time.AfterFunc(d, func() { run.over.Store(true) }).Stop()
	return sampleOf(begun, c.ended, talkConns, &run.n)
}
