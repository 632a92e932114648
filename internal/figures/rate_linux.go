package main

import (
	"fmt"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	rateWarmUp = 1000
	rateCount  = 10_000
	rateAtOnce = 64
	rateRounds = 5
)

// rateResult is what one side reports.
type rateResult struct {
	PerSecond float64 // dialling side
	CPU       float64 // ns per connection
	Allocs    float64 // objects per connection
}

// rate publishes how many connections per second one loop on each side makes and closes: one CPU for each process, blocking.
// Beside it what Go's net does with as many goroutines.
func rate() ([]row, error) {
	fmt.Printf("connect and close, %d at once, two processes on a CPU each, blocking, %d connections a run\n", rateAtOnce, rateCount)
	fmt.Printf("%-5s %10s %10s %8s %22s %24s\n", "run", "actor /s", "TCP /s", "ratio", "CPU µs dial+accept", "allocs dial+accept")
	var rates, ratios []float64
	for i := range rateRounds {
		as, ac, err := runPair[rateResult](ownCPU, "rate")
		if err != nil {
			return nil, err
		}
		_, nc, err := runPair[rateResult](ownCPU, "accept")
		if err != nil {
			return nil, err
		}
		rates, ratios = append(rates, ac.PerSecond), append(ratios, ac.PerSecond/nc.PerSecond)
		fmt.Printf("%-5d %10.0f %10.0f %8.2f %14.0f+%-7.0f %16.0f+%-7.0f\n",
			i+1, ac.PerSecond, nc.PerSecond, ratios[i], ac.CPU/1e3, as.CPU/1e3, ac.Allocs, as.Allocs)
	}
	fmt.Printf("median: %.0f connections a second, %.2f of TCP's\n", median(rates), median(ratios))
	return []row{{
		"connections per second, one loop, connect and close", "published",
		fmt.Sprintf("%.0f (%.2f of TCP's)", median(rates), median(ratios)), false,
	}}, nil
}

// rateMeter counts connections and measures the run behind the warm-up.
type rateMeter struct {
	n      int
	start  time.Time
	cpu    time.Duration
	allocs uint64
}

// closed takes one connection and reports whether it was the last.
func (m *rateMeter) closed() bool {
	if m.n++; m.n == rateWarmUp {
		m.allocs, m.cpu, m.start = mallocs(), cpuTime(), time.Now()
	}
	return m.n == rateWarmUp+rateCount
}

func (m *rateMeter) result() rateResult {
	return rateResult{
		PerSecond: rateCount / time.Since(m.start).Seconds(),
		CPU:       float64(cpuTime()-m.cpu) / rateCount,
		Allocs:    float64(mallocs()-m.allocs) / rateCount,
	}
}

func rateServer([]string) error {
	var meter rateMeter
	return serve(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.Closed); ok && meter.closed() {
			_ = report(meter.result())
		}
	}, nil)
}

func rateClient(args []string) error {
	rt, system, err := openRuntime()
	if err != nil {
		return err
	}
	var meter rateMeter
	done := make(chan error, 1)
	dialed := 0
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		dial := func() {
			if dialed++; dialed <= rateWarmUp+rateCount {
				ctx.Request(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: args[0]})
			}
		}
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for range rateAtOnce {
				dial()
			}
		case *rdma.Established:
			ctx.Respond(&rdma.Close{})
		case *rdma.Closed:
			if meter.closed() {
				done <- report(meter.result())
				return
			}
			dial()
		case rdma.Failure:
			done <- m
		}
	}, rt.OnLoop()))
	return <-done
}

// acceptServer sees every connection to its end.
func acceptServer([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ended := make(chan struct{}, rateAtOnce)
	failed := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			go func() {
				_, _ = c.Read(make([]byte, 1)) // until the client's end
				_ = c.Close()
				ended <- struct{}{}
			}()
		}
	}()
	go func() {
		var meter rateMeter
		for range ended {
			if meter.closed() {
				_ = report(meter.result())
			}
		}
	}()
	return waitFor(failed)
}

func acceptClient(args []string) error {
	var meter rateMeter
	ended := make(chan error, rateAtOnce)
	for range rateAtOnce {
		go func() {
			for {
				c, err := net.Dial("tcp", args[0])
				if err == nil {
					err = c.Close()
				}
				ended <- err
			}
		}()
	}
	for err := range ended {
		if err != nil {
			return err
		}
		if meter.closed() {
			break
		}
	}
	return report(meter.result())
}
