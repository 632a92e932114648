package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

const (
	echoSize   = 64
	warmUp     = 2000
	roundTrips = 20000
	rounds     = 11
)

// echoResult is what one side reports. Only clients know latencies.
type echoResult struct {
	P50, P99 time.Duration
	CPU      time.Duration // of this process, over the measured round trips
}

// echo compares actors over iwarp with net.Conn: both processes on one CPU, blocking.
func echo() ([]row, error) {
	fmt.Printf("64 B echo, two processes on one CPU, blocking, %d round trips a run\n", roundTrips)
	p50, cpu, err := echoRuns(sameCPU, "actor", "net")
	return []row{
		atMost("64 B echo, blocking, against net.Conn: p50", 1, p50),
		atMost("the same: CPU per round trip", 1, cpu),
	}, err
}

// echoRuns gives the median ratios of ours to theirs.
func echoRuns(on cpus, ours, theirs string) (p50, cpu float64, err error) {
	var p50s, cpus []float64
	fmt.Printf("%-5s %12s %12s %12s %12s %12s %12s\n", "run", ours+" p50", theirs+" p50", "ratio", ours+" CPU", theirs+" CPU", "ratio")
	for i := range rounds {
		a, err := echoRun(on, ours)
		if err != nil {
			return 0, 0, err
		}
		n, err := echoRun(on, theirs)
		if err != nil {
			return 0, 0, err
		}
		p50s = append(p50s, float64(a.P50)/float64(n.P50))
		cpus = append(cpus, float64(a.CPU)/float64(n.CPU))
		fmt.Printf("%-5d %12v %12v %12.2f %12v %12v %12.2f\n", i+1, a.P50, n.P50, p50s[i], a.CPU/roundTrips, n.CPU/roundTrips, cpus[i])
	}
	fmt.Printf("median ratio: p50 %.2f, CPU per round trip %.2f\n", median(p50s), median(cpus))
	return median(p50s), median(cpus), nil
}

// echoRun measures one pair. CPU is both processes'.
func echoRun(on cpus, kind string) (echoResult, error) {
	server, client, err := runPair[echoResult](on, kind)
	client.CPU += server.CPU
	return client, err
}

// meter times round trips.
type meter struct {
	n     int
	sent  time.Time
	times []time.Duration
	cpu   time.Duration
}

func newMeter() *meter { return &meter{times: make([]time.Duration, 0, roundTrips)} }

func (m *meter) send() { m.sent = time.Now() }

// back takes one answer and reports whether it was the last.
func (m *meter) back() bool {
	m.n++
	if m.n == warmUp {
		m.cpu = cpuTime()
	}
	if m.n > warmUp {
		m.times = append(m.times, time.Since(m.sent))
	}
	return m.n == warmUp+roundTrips
}

func (m *meter) result() echoResult {
	slices.Sort(m.times)
	return echoResult{P50: m.times[len(m.times)/2], P99: m.times[len(m.times)*99/100], CPU: cpuTime() - m.cpu}
}

// counter measures the server's CPU over the same round trips.
type counter struct {
	n   int
	cpu time.Duration
}

func (c *counter) message() {
	c.n++
	if c.n == warmUp {
		c.cpu = cpuTime()
	}
}

func (c *counter) result() echoResult { return echoResult{CPU: cpuTime() - c.cpu} }

func actorServer(wait eventloop.WaitMode) func([]string) error {
	return func([]string) error {
		var count counter
		return serve(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *rdma.Received:
				count.message()
				ctx.Respond(rdma.NewSend(m.Data))
			case *rdma.Disconnected:
				_ = report(count.result())
			}
		}, nil, rdma.WithWait(wait))
	}
}

func actorClient(wait eventloop.WaitMode) func([]string) error {
	return func(args []string) error {
		meter := newMeter()
		payload := make([]byte, echoSize)
		return dial(args[0], func(ctx actor.Context) error {
			switch m := ctx.Message().(type) {
			case *rdma.Established:
				meter.send()
				ctx.Respond(rdma.NewSend(payload))
			case *rdma.Received:
				if len(m.Data) != echoSize {
					return fmt.Errorf("%d bytes came back", len(m.Data))
				}
				if meter.back() {
					ctx.Respond(&rdma.Disconnect{})
					return report(meter.result())
				}
				meter.send()
				ctx.Respond(rdma.NewSend(m.Data))
			}
			return nil
		}, nil, rdma.WithWait(wait))
	}
}

func netServer([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	c, err := l.Accept()
	if err != nil {
		return err
	}
	var count counter
	b := make([]byte, echoSize)
	for {
		if _, err := io.ReadFull(c, b); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		count.message()
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	if err := report(count.result()); err != nil {
		return err
	}
	return waitFor(nil)
}

func netClient(args []string) error {
	c, err := net.Dial("tcp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	meter := newMeter()
	b := make([]byte, echoSize)
	for {
		meter.send()
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if meter.back() {
			return report(meter.result())
		}
	}
}
