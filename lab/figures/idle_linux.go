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

// memoryPer returns the Go memory for each of n connections, in KiB. before is that of the process
// before it had any.
func memoryPer(n int, before uint64) float64 {
	return (float64(stats.GoMemory()) - float64(before)) / 1024 / float64(max(n, 1))
}

func serveIdle(e measure.Entry) (measure.Service, error) {
	var before uint64
	var n atomic.Int64
	s, err := contest.ServeActors(e, func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			before = stats.GoMemory()
		case *rdma.Established:
			n.Add(1)
		}
	}, rdma.IDConfig{})
	s.Report = func() measure.Metrics { return measure.Metrics{acceptedKiB: memoryPer(int(n.Load()), before)} }
	return s, err
}

// dialIdle makes a client that opens the connections and sends nothing on them.
func dialIdle(addr string, e measure.Entry) (measure.Client, error) {
	n := idleConnections
	if e.Quick {
		n = quickIdle
	}
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Client{}, err
	}
	before := stats.GoMemory()
	err = w.DialMany(addr, n)
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		return measure.Sample{
			N: n, Seconds: d.Seconds(), More: measure.Metrics{measure.Connections: float64(n), dialledKiB: memoryPer(n, before)},
		}, nil
	}, Close: w.Close}, err
}
