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

// atClient gives the client at least two loops in a scenario that compares numbers of loops.
func atClient(e measure.Entry) measure.Entry {
	if e.Loops > 0 {
		e.Loops = max(2, e.Loops)
	}
	return e
}

// dialRate makes a client that connects and closes repeatedly. Several connections are in progress
// at a time, each with its owner or goroutine.
func dialRate(addr string, e measure.Entry) (measure.Client, error) {
	if e.Contestant == "net.Conn" {
		return measure.NewClient(func(d time.Duration) (measure.Sample, error) { return rateTCP(addr, d) }, func() error { return nil }), nil
	}
	w, err := contest.OpenWorld(atClient(e), rdma.Config{})
	if err != nil {
		return nil, err
	}
	return measure.NewClient(func(d time.Duration) (measure.Sample, error) { return measureRate(w, addr, d) }, w.Close), nil
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
