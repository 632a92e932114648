package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/internal/hostile"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

const (
	stormGood     = 9900
	stormHostiles = 100
	quickStorm    = 50 // a quick run has one in quickStorm of the peers
	// stormPatience is how long a peer waits for its turn, and how long a hostile peer may stay.
	stormPatience = 30 * time.Second
)

// The metrics of the storm. Memory is in MiB. Memory and sockets are the server's.
const (
	goodServed     = "good served"
	goodSeconds    = "s"
	hostileEnded   = "hostile ended"
	hostileSeconds = "hostile s"
	goBefore       = "Go MiB before"
	goWith         = "Go MiB with all"
	goAfter        = "Go MiB after"
	rssPeak        = "RSS MiB at the peak"
	rssAfter       = "RSS MiB after"
	socketsBefore  = "sockets before"
	socketsAfter   = "sockets after"
)

func toMiB(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// howMany returns the numbers of good and of hostile peers.
func howMany(e measure.Entry) (good, hostiles int) {
	if e.Quick {
		return stormGood / quickStorm, stormHostiles / quickStorm
	}
	return stormGood, stormHostiles
}

// serveStorm starts an echo server that measures its process.
func serveStorm(e measure.Entry) (measure.Service, error) {
	good, _ := howMany(e)
	var before uint64
	var with atomic.Uint64 // bytes of Go memory when all good peers are connected
	up, sockets := 0, 0
	s, err := contest.ServeActors(e, func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.Listening:
			before, sockets = stats.GoMemory(), openSockets()
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
			if up++; up == good {
				with.Store(stats.GoMemory())
			}
		}
	}, rdma.IDConfig{})
	s.Report = func() measure.Metrics {
		// Some connections see their peer's FIN late.
		for end := time.Now().Add(stormPatience); openSockets() > sockets && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		debug.FreeOSMemory()
		return measure.Metrics{
			goBefore: toMiB(before), goWith: toMiB(with.Load()), goAfter: toMiB(stats.GoMemory()),
			rssPeak: toMiB(stats.ProcessMemory("VmHWM")), rssAfter: toMiB(stats.ProcessMemory("VmRSS")),
			socketsBefore: float64(sockets), socketsAfter: float64(openSockets()),
		}
	}
	return s, err
}

// openSockets counts the process's sockets. It leaves out the loop's timerfd, which is opened when
// it is first needed.
func openSockets() int { return stats.OpenFiles("socket:") }

// dialStorm makes a client that runs all the peers.
func dialStorm(addr string, e measure.Entry) (measure.Client, error) {
	w, err := contest.OpenWorld(e, rdma.Config{Timeouts: rdma.Timeouts{Address: stormPatience, Route: stormPatience, Connect: stormPatience}})
	good, hostiles := howMany(e)
	return measure.Client{Run: func(time.Duration) (measure.Sample, error) {
		metrics := make(chan measure.Metrics)
		go func() { metrics <- beHostile(addr, hostiles) }()
		s := beGood(w, addr, good)
		maps.Copy(s.More, <-metrics)
		return s, nil
	}, Close: w.Close}, err
}

// beGood dials for all good peers concurrently. Each connection stays open until all peers have
// their answer.
func beGood(w contest.World, addr string, peers int) measure.Sample {
	begun := time.Now()
	times, done := stats.NewTimes(3), make(chan measure.Sample, 1)
	payload := make([]byte, contest.PayloadSize)
	began := make(map[string]time.Time, peers) // keyed by PID
	var ids []*actor.PID
	var s measure.Sample
	over, closed, failed := 0, 0, 0
	one := func(ctx actor.Context) { // a peer has its answer, or never will
		if over++; over < peers {
			return
		}
		s.N, s.Seconds, s.Times = int(times.TotalCount()), time.Since(begun).Seconds(), measure.Percentiles(times)
		s.More = measure.Metrics{goodServed: float64(s.N), goodSeconds: s.Seconds}
		for _, id := range ids {
			ctx.Send(id, &rdma.DestroyID{})
		}
	}
	w.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for range peers {
				id := w.RT.CreateID(ctx.Self())
				ids, began[id.Id] = append(ids, id), time.Now()
				ctx.Request(id, &rdma.Dial{Addr: addr})
			}
		case *rdma.Established:
			ctx.Respond(rdma.NewSend(payload))
		case *rdma.Received:
			times.Add(time.Since(began[ctx.Sender().Id]))
			one(ctx)
		case *rdma.Closed:
			if closed++; closed == peers {
				done <- s
			}
		case rdma.Failure:
			if failed++; failed <= 3 { // the others are similar
				fmt.Fprintln(os.Stderr, "storm: a good peer:", m)
			}
			one(ctx)
		}
	}, w.RT.OnLoop()))
	return <-done
}

// beHostile runs every kind of hostile caller in turn, and counts those that the server ends.
func beHostile(addr string, peers int) measure.Metrics {
	kinds := hostile.Callers()
	gone := make(chan time.Duration, peers)
	for i := range peers {
		go func() {
			kind := kinds[i%len(kinds)]
			ctx, cancel := context.WithTimeout(context.Background(), stormPatience)
			defer cancel()
			start := time.Now()
			if _, err := kind.Dial(ctx, addr, hostile.Options{}); err != nil || ctx.Err() != nil {
				fmt.Fprintf(os.Stderr, "storm: hostile peer %d (%s): %v after %v\n", i, kind.Name, errors.Join(err, ctx.Err()), time.Since(start))
				gone <- 0
				return
			}
			gone <- time.Since(start)
		}()
	}
	ended, slowest := 0, time.Duration(0)
	for range peers {
		if d := <-gone; d > 0 {
			ended++
			slowest = max(slowest, d)
		}
	}
	return measure.Metrics{hostileEnded: float64(ended), hostileSeconds: slowest.Seconds()}
}
