package main

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

const (
	rateMost   = 10_000 // connections of a run; afterwards their ports are in TIME_WAIT
	rateAtOnce = 64

	talkConns  = 64
	talkWindow = 16 // messages in flight on each connection
)

// serveRate starts a server that keeps every connection until the client ends it.
func serveRate(e measure.Entry) (measure.Service, error) {
	if e.Contestant == "net.Conn" {
		return contest.ListenTCP(func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1)) // lasts until the client closes
		})
	}
	return contest.ServeActors(e, func(actor.Context) {}, rdma.IDConfig{})
}

// dialRate makes a client that connects and closes repeatedly. Several connections are in progress
// at a time, each with its owner or goroutine.
func dialRate(addr string, e measure.Entry) (measure.Client, error) {
	if e.Contestant == "net.Conn" {
		return measure.Client{
			Run: func(d time.Duration) (measure.Sample, error) { return rateTCP(addr, d) }, Close: func() error { return nil },
		}, nil
	}
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Client{}, err
	}
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) { return measureRate(w, addr, d) }, Close: w.Close}, nil
}

func measureRate(w contest.World, addr string, d time.Duration) (measure.Sample, error) {
	ended := make(chan error, 2*rateAtOnce)
	var n atomic.Int64
	begun := time.Now()
	for range rateAtOnce {
		w.Spawn(ended, func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
			case *rdma.Established:
				ctx.Respond(&rdma.Close{})
				return
			case *rdma.Closed:
				if n.Add(1) >= rateMost || time.Since(begun) >= d {
					ended <- nil
					return
				}
			default:
				return
			}
			ctx.Request(w.RT.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
		})
	}
	return sampleOf(begun, ended, rateAtOnce, &n)
}

// sampleOf waits until all owners have ended, and returns the sample with the count in n.
func sampleOf(begun time.Time, ended <-chan error, owners int, n *atomic.Int64) (measure.Sample, error) {
	for range owners {
		if err := <-ended; err != nil {
			return measure.Sample{}, err
		}
	}
	return measure.Sample{N: int(n.Load()), Seconds: time.Since(begun).Seconds()}, nil
}

func rateTCP(addr string, d time.Duration) (measure.Sample, error) {
	ended := make(chan error, rateAtOnce)
	var n atomic.Int64
	begun := time.Now()
	for range rateAtOnce {
		go func() {
			for {
				c, err := net.Dial("tcp", addr)
				if err == nil {
					err = c.Close()
				}
				if err != nil || n.Add(1) >= rateMost || time.Since(begun) >= d {
					ended <- err
					return
				}
			}
		}()
	}
	return sampleOf(begun, ended, rateAtOnce, &n)
}

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

// dialTalk makes a client of owners with a connection each, on two loops at least.
func dialTalk(addr string, e measure.Entry) (measure.Client, error) {
	e.Loops = max(2, e.Loops)
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Client{}, err
	}
	ended := make(chan error, 2*talkConns)
	var owners []*actor.PID
	for range talkConns {
		owners = append(owners, w.Spawn(ended, connOwner(w.RT, addr, ended)))
	}
	var established atomic.Int64
	_, err = sampleOf(time.Now(), ended, talkConns, &established)
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		run := new(talk)
		begun := time.Now()
		for _, owner := range owners {
			w.System.Root.Send(owner, run)
		}
		defer time.AfterFunc(d, func() { run.over.Store(true) }).Stop()
		return sampleOf(begun, ended, talkConns, &run.n)
	}, Close: w.Close}, err
}

// connOwner returns an actor with one connection. It reports to ended when that is established, and
// at the end of each talk.
func connOwner(rt *rdma.Runtime, addr string, ended chan<- error) actor.ReceiveFunc {
	var id *actor.PID
	var run *talk
	var got int64
	way := 0 // number of messages in flight
	payload := make([]byte, contest.PayloadSize)
	return func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			id = rt.CreateID(ctx.Self())
			ctx.Request(id, &rdma.Dial{Addr: addr})
		case *rdma.Established:
			ended <- nil
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
				ended <- nil
			}
		}
	}
}
