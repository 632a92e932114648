package main

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	loopsConns    = 64
	loopsSize     = 64
	loopsWindow   = 16     // messages under way on each connection
	loopsMessages = 20_000 // round trips of each connection
	loopsRounds   = 5
)

// loopsResult is what one side reports.
type loopsResult struct {
	PerSecond float64 // round trips, or connections
	Busy      float64 // processors that were in use
}

// loopsModes are what is compared; each is a server's and a client's first argument behind the number of loops.
var loopsModes = []struct{ name, what string }{
	{"messages", "64 B round trips per second, 64 connections"},
	{"connections", "connections per second, connect and close, 64 at once"},
}

// loops compares a server of several loops with one of one loop. Its clients are another process with several. Nobody is bound to a CPU:
// on a machine with few of them both processes share them, and how busy they are says who is the limit.
func loops() ([]row, error) {
	defer func(n int) { procs = n }(procs)
	procs = max(procs, loopCount)
	var table []row
	for _, mode := range loopsModes {
		fmt.Printf("%s; one loop against %d\n", mode.what, loopCount)
		fmt.Printf("%-5s %12s %12s %8s %28s %28s\n", "run", "1 loop /s", "loops /s", "ratio", "CPUs server+client, 1 loop", "CPUs server+client, loops")
		var ratios, rates []float64
		for i := range loopsRounds {
			s1, c1, err := runPair[loopsResult](cpus{-1, -1}, "loops", "1", mode.name)
			if err != nil {
				return nil, err
			}
			sn, cn, err := runPair[loopsResult](cpus{-1, -1}, "loops", strconv.Itoa(loopCount), mode.name)
			if err != nil {
				return nil, err
			}
			ratios, rates = append(ratios, cn.PerSecond/c1.PerSecond), append(rates, cn.PerSecond)
			fmt.Printf("%-5d %12.0f %12.0f %8.2f %21.2f+%-6.2f %21.2f+%-6.2f\n",
				i+1, c1.PerSecond, cn.PerSecond, ratios[i], s1.Busy, c1.Busy, sn.Busy, cn.Busy)
		}
		fmt.Printf("median: %.0f a second, ratio %.2f\n", median(rates), median(ratios))
		table = append(table, row{
			fmt.Sprintf("%s: %d loops against one", mode.what, loopCount), "published",
			fmt.Sprintf("%.2f (%.0f)", median(ratios), median(rates)), false,
		})
	}
	return table, nil
}

// loopCount is the -loops flag: the loops of the server that is compared, and of every client.
var loopCount int

// span measures a run that actors of several loops take part in.
type span struct {
	mu      sync.Mutex
	n       int
	begun   time.Time
	cpu     time.Duration
	told    bool
	warmUp  int // things before the run
	measure int // things in it
}

// count takes n things and reports whether the last of them was among them: once.
func (s *span) count(n int) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += n
	if s.begun.IsZero() && s.n >= s.warmUp {
		s.begun, s.cpu = time.Now(), cpuTime()
	}
	last = s.n >= s.warmUp+s.measure && !s.told
	s.told = s.told || last
	return last
}

func (s *span) result() loopsResult {
	took := time.Since(s.begun)
	return loopsResult{PerSecond: float64(s.measure) / took.Seconds(), Busy: float64(cpuTime()-s.cpu) / float64(took)}
}

// loopsServer gives each connection a handler that echoes, on the connection's loop.
func loopsServer(args []string) error {
	closed := span{warmUp: rateWarmUp, measure: rateCount}
	if args[1] == "messages" {
		closed = span{warmUp: loopsConns, measure: 1} // from the last Established to the first Closed
	}
	handler := actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Established:
			if args[1] == "messages" {
				closed.count(1)
			}
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
		case *rdma.Closed:
			if closed.count(1) {
				_ = report(closed.result())
			}
		}
	})
	return serve(func(actor.Context) {}, []rdma.IDOption{rdma.WithHandler(handler)}, rdma.WithLoops(atoi(args[0])))
}

func loopsClient(args []string) error {
	rt, system, err := openRuntime(rdma.WithLoops(max(2, atoi(args[1]))))
	if err != nil {
		return err
	}
	done := make(chan error, loopsConns)
	client := loopsTalk(rt, args[0], done)
	if args[2] == "connections" {
		client = loopsRate(rt, args[0], done)
	}
	for range loopsConns {
		system.Root.Spawn(actor.PropsFromProducer(client, rt.OnLoop()))
	}
	return <-done
}

// loopsBegin tells an owner that all connections are there.
type loopsBegin struct{}

// loopsTalk makes owners that keep a window of messages going to and fro.
func loopsTalk(rt *rdma.Runtime, addr string, done chan<- error) actor.Producer {
	var mu sync.Mutex
	var ids []*actor.PID // owners whose connection is established
	run := span{warmUp: 1, measure: loopsConns}
	payload := make([]byte, loopsSize)
	return func() actor.Actor {
		var id *actor.PID
		got := 0
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				id = rt.CreateID(ctx.Self())
				ctx.Request(id, &rdma.Dial{Addr: addr})
			case *rdma.Established:
				mu.Lock()
				ids = append(ids, ctx.Self())
				all := len(ids) == loopsConns
				mu.Unlock()
				if all {
					run.count(1)
					for _, owner := range ids {
						ctx.Send(owner, &loopsBegin{})
					}
				}
			case *loopsBegin:
				for range loopsWindow {
					ctx.Request(id, rdma.NewSend(payload))
				}
			case *rdma.Received:
				if got++; got <= loopsMessages-loopsWindow {
					ctx.Request(id, rdma.NewSend(m.Data))
				} else if got == loopsMessages && run.count(1) {
					r := run.result()
					r.PerSecond *= loopsMessages // it has counted connections
					done <- report(r)
				}
			case rdma.Failure:
				done <- m
			}
		})
	}
}

// loopsRate makes owners that connect and close, one connection after the other.
func loopsRate(rt *rdma.Runtime, addr string, done chan<- error) actor.Producer {
	run := span{warmUp: rateWarmUp, measure: rateCount}
	var dialed atomic.Int32
	return func() actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				dialed.Add(1)
				ctx.Request(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
			case *rdma.Established:
				ctx.Respond(&rdma.Close{})
			case *rdma.Closed:
				switch {
				case run.count(1):
					done <- report(run.result())
				case dialed.Add(1) <= rateWarmUp+rateCount:
					ctx.Request(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
				}
			case rdma.Failure:
				done <- m
			}
		})
	}
}
