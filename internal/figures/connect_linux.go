package main

import (
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	connectWarmUp = 200
	connectCount  = 1000
	connectRounds = 9
)

// connectTimes are moments of the host's monotonic clock, one for each connection, in nanoseconds.
type connectTimes struct {
	Start, Ready []int64
	CPU          time.Duration // of this process, over the measured connections
}

// connect compares a connection that both sides know to be established with dial, accept and a round trip: both processes on one
// CPU, blocking, one connection after the other. All stay open, so that no end is measured.
func connect() ([]row, error) {
	fmt.Printf("one connection at a time, two processes on one CPU, blocking, %d connections a run\n", connectCount)
	fmt.Printf("%-5s %14s %14s %8s %12s %12s %8s\n", "run", "actor p50", "TCP p50", "ratio", "actor CPU", "TCP CPU", "ratio")
	var ratios, costs []float64
	for i := range connectRounds {
		server, client, err := runPair[connectTimes](sameCPU, "connect")
		if err != nil {
			return nil, err
		}
		for i, t := range server.Ready { // established means on both sides
			client.Ready[i] = max(client.Ready[i], t)
		}
		accepting, plain, err := runPair[connectTimes](sameCPU, "dial")
		if err != nil {
			return nil, err
		}
		a, n := client.p50(), plain.p50()
		ratios = append(ratios, float64(a)/float64(n))
		ac, nc := (client.CPU+server.CPU)/connectCount, (plain.CPU+accepting.CPU)/connectCount
		costs = append(costs, float64(ac)/float64(nc))
		fmt.Printf("%-5d %14v %14v %8.2f %12v %12v %8.2f\n", i+1, a, n, ratios[i], ac, nc, costs[i])
	}
	fmt.Printf("median ratio: p50 %.2f, CPU per connection %.2f\n", median(ratios), median(costs))
	return []row{atMost("connection, established on both sides, against dial, accept, round trip: p50", 1.5, median(ratios))}, nil
}

// started and stood note a connection's moments.
func (c *connectTimes) started() {
	c.Start = append(c.Start, monotonic())
	if len(c.Start) == connectWarmUp+1 {
		c.CPU = cpuTime()
	}
}

func (c *connectTimes) stood() { c.Ready = append(c.Ready, monotonic()) }

func (c *connectTimes) report() error {
	c.CPU = cpuTime() - c.CPU
	return report(c)
}

func (c *connectTimes) p50() time.Duration {
	var d []time.Duration
	for i := connectWarmUp; i < len(c.Start); i++ {
		d = append(d, time.Duration(c.Ready[i]-c.Start[i]))
	}
	slices.Sort(d)
	return d[len(d)/2]
}

// monotonic is the same clock in all processes of the host.
func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail with these arguments
	return ts.Nano()
}

// connectServer notes when its side is established, and then tells the client, who makes the next connection.
func connectServer([]string) error {
	var times connectTimes
	return serve(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *rdma.ConnectRequest:
			times.started()
		case *rdma.Established:
			times.stood()
			ctx.Respond(rdma.NewSend([]byte("up")))
			if len(times.Ready) == connectWarmUp+connectCount {
				_ = times.report()
			}
		}
	}, nil)
}

func connectClient(args []string) error {
	rt, system, err := openRuntime()
	if err != nil {
		return err
	}
	var times connectTimes
	done := make(chan error, 1)
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started, *rdma.Received:
			if len(times.Start) == connectWarmUp+connectCount {
				done <- times.report()
				return
			}
			times.started()
			ctx.Request(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: args[0]})
		case *rdma.Established:
			times.stood()
		case rdma.Failure:
			done <- m
		}
	}, rt.OnLoop()))
	return <-done
}

// dialServer answers one message on each connection.
func dialServer([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	var times connectTimes
	b := make([]byte, echoSize)
	for range connectWarmUp + connectCount {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		times.started()
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	if err := times.report(); err != nil {
		return err
	}
	return waitFor(nil)
}

func dialClient(args []string) error {
	var times connectTimes
	b := make([]byte, echoSize)
	for range connectWarmUp + connectCount {
		times.started()
		c, err := net.Dial("tcp", args[0])
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		times.stood()
	}
	return times.report()
}
