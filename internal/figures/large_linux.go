package main

import (
	"fmt"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const largeAhead = 4 // messages on their way

// large compares large messages from actor to actor with TCP: one CPU for each process, blocking. The sender fills a buffer for each
// message no more than the stream's does.
func large() ([]row, error) {
	sizes := []int{32 << 10, 64 << 10, 128 << 10, 256 << 10, bulkSize}
	fmt.Printf("messages between actors, two processes on a CPU each, blocking, %d MiB a run\n", bulkCount)
	fmt.Printf("GiB/s, its ratio to TCP's, and the ratio of both processes' CPU to TCP's\n%-5s %8s", "run", "TCP")
	for _, n := range sizes {
		fmt.Printf(" %18d KiB", n>>10)
	}
	fmt.Println()
	speeds, costs := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	for i := range bulkRounds {
		tr, ts, err := runPair[bulkResult](ownCPU, "stream")
		if err != nil {
			return nil, err
		}
		fmt.Printf("%-5d %8.2f", i+1, tr.PerSecond/(1<<30))
		for k, n := range sizes {
			r, s, err := runPair[bulkResult](ownCPU, "large", strconv.Itoa(n))
			if err != nil {
				return nil, err
			}
			speeds[k] = append(speeds[k], r.PerSecond/tr.PerSecond)
			costs[k] = append(costs[k], (r.CPU+s.CPU)/(tr.CPU+ts.CPU))
			fmt.Printf(" %8.2f %6.2f %6.2f", r.PerSecond/(1<<30), speeds[k][i], costs[k][i])
		}
		fmt.Println()
	}
	fmt.Printf("median ratios:")
	for k, n := range sizes {
		fmt.Printf(" %d KiB %.2f, CPU %.2f;", n>>10, median(speeds[k]), median(costs[k]))
	}
	fmt.Println()
	return []row{atLeast("1 MiB messages between actors, against TCP: throughput", 0.9, median(speeds[len(sizes)-1]))}, nil
}

// largeMeter counts messages of a size, and measures behind the warm-up.
type largeMeter struct {
	bulkMeter
	size, got int
}

// add reports whether the message was the last.
func (m *largeMeter) add() (last bool) {
	m.got++
	if m.got == bulkWarmUp*(bulkSize/m.size) {
		m.begin()
	}
	return m.got == (bulkWarmUp+bulkCount)*(bulkSize/m.size)
}

func largeServer(args []string) error {
	got := largeMeter{size: atoi(args[0])}
	return serve(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*rdma.Received); ok && len(m.Data) == got.size && got.add() {
			_ = report(got.result())
		}
	}, []rdma.IDOption{rdma.WithMessages(bulkSize, 32)})
}

// largeClient sends another message when it is told that one is sent, or read.
func largeClient(args []string) error {
	sent := largeMeter{size: atoi(args[1])}
	next := 0
	send := func(ctx actor.Context) {
		if next++; next <= (bulkWarmUp+bulkCount)*(bulkSize/sent.size) {
			m := rdma.NewSendBuffer(sent.size)
			m.Notify = true
			ctx.Request(ctx.Sender(), m)
		}
	}
	return dial(args[0], func(ctx actor.Context) error {
		switch ctx.Message().(type) {
		case *rdma.Established:
			for range max(largeAhead, largeAhead*(256<<10)/sent.size) {
				send(ctx)
			}
		case *rdma.Sent:
			send(ctx)
			if sent.add() {
				ctx.Respond(&rdma.Close{})
				return report(sent.result())
			}
		}
		return nil
	}, []rdma.IDOption{rdma.WithMessages(bulkSize, 32)})
}
