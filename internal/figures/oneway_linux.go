package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	oneWaySize    = 64
	oneWayWarmUp  = 100_000
	oneWayCount   = 2_000_000
	writeCount    = 300_000
	oneWayRounds  = 7
	oneWayCredits = 8192 // messages the receiver takes without having consumed them
	oneWayBatch   = 1024 // messages sent before the owner looks at its mailbox again
	oneWayAhead   = 4    // batches on their way
)

// oneWayResult is what one side reports.
type oneWayResult struct {
	PerSecond float64 // receiver
	Allocs    float64 // per message
	CPU       float64 // ns per message
}

// oneWay compares messages from actor to actor with one write per message: one CPU for each process, blocking.
func oneWay() ([]row, error) {
	fmt.Printf("one-way 64 B messages, two processes on a CPU each, blocking, %d messages a run\n", oneWayCount)
	fmt.Printf("%-5s %14s %14s %8s %15s %15s %8s %16s\n",
		"run", "actor msg/s", "write msg/s", "ratio", "actor CPU ns", "write CPU ns", "ratio", "actor allocs")
	var ratios, rates, costs, allocs []float64
	for i := range oneWayRounds {
		as, ac, err := runPair[oneWayResult](ownCPU, "oneway")
		if err != nil {
			return nil, err
		}
		ws, wc, err := runPair[oneWayResult](ownCPU, "write")
		if err != nil {
			return nil, err
		}
		ratios = append(ratios, as.PerSecond/ws.PerSecond)
		rates = append(rates, as.PerSecond)
		allocs = append(allocs, as.Allocs+ac.Allocs)
		costs = append(costs, (ws.CPU+wc.CPU)/(as.CPU+ac.CPU))
		fmt.Printf("%-5d %14.0f %14.0f %8.2f %9.0f+%-5.0f %9.0f+%-5.0f %8.2f %9.4f+%-6.4f\n",
			i+1, as.PerSecond, ws.PerSecond, ratios[i], ac.CPU, as.CPU, wc.CPU, ws.CPU, costs[i], ac.Allocs, as.Allocs)
	}
	fmt.Printf("median: ratio %.2f, %.0f msg/s, messages for the same CPU %.2f, %.4f allocations a message\n",
		median(ratios), median(rates), median(costs), median(allocs))
	return []row{
		atLeast("one-way 64 B messages, against one write each: messages per second", 8, median(ratios)),
		{"the same: million messages per second", ">= 2", fmt.Sprintf("%.2f", median(rates)/1e6), median(rates) < 2e6},
		{"the same: allocations per message, both sides", "0", fmt.Sprintf("%.3f", median(allocs)), median(allocs) >= 0.05},
	}, nil
}

// gauge counts messages and measures the run behind the warm-up.
type gauge struct {
	want   int // messages behind the warm-up
	n      int
	base   int // n at the end of the warm-up
	start  time.Time
	cpu    time.Duration
	allocs uint64
}

// add takes k messages and reports whether they were the last.
func (g *gauge) add(k int) bool {
	g.n += k
	if g.base == 0 && g.n >= oneWayWarmUp {
		g.base, g.allocs, g.cpu, g.start = g.n, mallocs(), cpuTime(), time.Now()
	}
	return g.n >= oneWayWarmUp+g.want
}

func (g *gauge) result() oneWayResult {
	n := float64(g.n - g.base)
	return oneWayResult{
		PerSecond: n / time.Since(g.start).Seconds(),
		CPU:       float64(cpuTime()-g.cpu) / n,
		Allocs:    float64(mallocs()-g.allocs) / n,
	}
}

func oneWayServer([]string) error {
	got := gauge{want: oneWayCount}
	over := false
	return serve(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.Received); ok && !over && got.add(1) {
			over = true
			_ = report(got.result())
		}
	}, []rdma.IDOption{rdma.WithMessages(1024, oneWayCredits)})
}

// oneWayClient keeps some batches on their way. The last message of each asks to be told when it has gone.
func oneWayClient(args []string) error {
	payload := make([]byte, oneWaySize)
	sent := gauge{want: oneWayCount}
	batch := func(ctx actor.Context) {
		id := ctx.Sender()
		for range oneWayBatch - 1 {
			ctx.Send(id, rdma.NewSend(payload))
		}
		last := rdma.NewSend(payload)
		last.Notify = true
		ctx.Request(id, last)
	}
	over := false
	return dial(args[0], func(ctx actor.Context) error {
		switch ctx.Message().(type) {
		case *rdma.Established:
			for range oneWayAhead {
				batch(ctx)
			}
		case *rdma.Sent:
			if over {
				return nil
			}
			if sent.add(oneWayBatch) {
				over = true
				ctx.Respond(&rdma.Close{})
				return report(sent.result())
			}
			batch(ctx)
		}
		return nil
	}, nil, rdma.WithLimits(rdma.Limits{SendQueue: oneWayAhead*oneWayBatch + 1}))
}

// writeClient makes one write(2) for each message.
func writeClient(args []string) error {
	fd, err := plainDial(args[0])
	if err != nil {
		return err
	}
	b := make([]byte, oneWaySize)
	sent := gauge{want: writeCount}
	for {
		n, err := unix.Write(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != len(b) {
			return fmt.Errorf("write of %d bytes: %d, %w", len(b), n, err)
		}
		if sent.add(1) {
			return report(sent.result())
		}
	}
}

// writeServer reads as much as there is.
func writeServer([]string) error {
	fd, err := plainServer()
	if err != nil {
		return err
	}
	b := make([]byte, 256<<10)
	got := gauge{want: writeCount}
	part := 0
	for {
		n, err := unix.Read(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil {
			return err
		}
		part += n
		over := got.add(part / oneWaySize)
		part %= oneWaySize
		if over {
			break
		}
	}
	if err := report(got.result()); err != nil {
		return err
	}
	return waitFor(nil)
}
