package main

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

const (
	idleConnections = 15_000
	quickIdle       = 100

	acceptedKiB = "accepted KiB"
	dialledKiB  = "dialled KiB"
)

// census is the Go memory of a process before it has connections, in bytes.
type census float64

func newCensus() census { return census(stats.GoMemory()) }

// perConnection returns the Go memory per connection for n connections, in KiB.
func (c census) perConnection(n int) float64 {
	return (float64(stats.GoMemory()) - float64(c)) / 1024 / float64(max(n, 1))
}

// idleService is a service that counts its connections.
type idleService struct {
	measure.Service
	before census
	n      atomic.Int64
}

func serveIdle(e measure.Entry) (measure.Service, error) {
	s := &idleService{}
	var err error
	s.Service, err = contest.ServeActors(e, func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			s.before = newCensus()
		case *rdma.Established:
			s.n.Add(1)
		}
	}, rdma.IDConfig{})
	return s, err
}

// Report implements measure.Reporter.
func (s *idleService) Report() measure.Metrics {
	return measure.Metrics{acceptedKiB: s.before.perConnection(int(s.n.Load()))}
}

// dialIdle makes a client that opens the connections and sends nothing on them.
func dialIdle(addr string, e measure.Entry) (measure.Client, error) {
	n := idleConnections
	if e.Quick {
		n = quickIdle
	}
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return nil, err
	}
	before := newCensus()
	c, err := w.DialCrowd(addr, n, func(*rdma.Received) {})
	if err != nil {
		return nil, err
	}
	return measure.NewClient(func(d time.Duration) (measure.Sample, error) {
		return measure.Sample{
			N: n, Seconds: d.Seconds(), More: measure.Metrics{measure.Connections: float64(n), dialledKiB: before.perConnection(n)},
		}, nil
	}, c.Close), nil
}
