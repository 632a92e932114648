package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
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
func echo() error {
	var p50, cpu []float64
	fmt.Printf("64 B echo, two processes on one CPU, blocking, %d round trips a run\n", roundTrips)
	fmt.Printf("%-5s %12s %12s %12s %12s %12s %12s\n", "run", "actor p50", "net p50", "ratio", "actor CPU", "net CPU", "ratio")
	for i := range rounds {
		a, err := echoRun("actor")
		if err != nil {
			return err
		}
		n, err := echoRun("net")
		if err != nil {
			return err
		}
		p50 = append(p50, float64(a.P50)/float64(n.P50))
		cpu = append(cpu, float64(a.CPU)/float64(n.CPU))
		fmt.Printf("%-5d %12v %12v %12.2f %12v %12v %12.2f\n", i+1, a.P50, n.P50, p50[i], a.CPU/roundTrips, n.CPU/roundTrips, cpu[i])
	}
	fmt.Printf("median ratio: p50 %.2f, CPU per round trip %.2f\n", median(p50), median(cpu))
	return nil
}

// echoRun measures one pair. CPU is both processes'.
func echoRun(kind string) (echoResult, error) {
	server, err := startChild(0, kind+"-server")
	if err != nil {
		return echoResult{}, err
	}
	defer server.stop()
	addr, err := server.line()
	if err != nil {
		return echoResult{}, err
	}
	client, err := startChild(0, kind+"-client", addr)
	if err != nil {
		return echoResult{}, err
	}
	defer client.stop()
	var c, s echoResult
	if err := client.result(&c); err != nil {
		return c, err
	}
	err = server.result(&s)
	c.CPU += s.CPU
	return c, err
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

func openRuntime() (*rdma.Runtime, *actor.ActorSystem, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	rt, err := rdma.Open(system, rdma.WithDevice(iwarp.New()), rdma.WithLogger(log))
	return rt, system, err
}

func actorServer([]string) error {
	var count counter
	return serve(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.Received:
			count.message()
			ctx.Respond(rdma.NewSend(m.Data))
		case *rdma.Disconnected:
			_ = report(count.result())
		}
	})
}

// serve accepts everybody and prints its address, until it is told to stop. handle sees every message too.
func serve(handle actor.ReceiveFunc) error {
	rt, system, err := openRuntime()
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(rt.CreateID(ctx.Self()), &rdma.Serve{Addr: "127.0.0.1:0"})
		case *rdma.Listening:
			fmt.Println(m.Local)
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case rdma.Failure:
			failed <- m
		}
		handle(ctx)
	}, rt.OnLoop()))
	return waitFor(failed)
}

// waitFor waits for the end of the pair, or a failure.
func waitFor(failed <-chan error) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func actorClient(args []string) error {
	rt, system, err := openRuntime()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	meter := newMeter()
	payload := make([]byte, echoSize)
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: args[0]})
		case *rdma.Established:
			meter.send()
			ctx.Respond(rdma.NewSend(payload))
		case *rdma.Received:
			if len(m.Data) != echoSize {
				done <- fmt.Errorf("%d bytes came back", len(m.Data))
				return
			}
			if meter.back() {
				_ = report(meter.result())
				ctx.Respond(&rdma.Disconnect{})
				return
			}
			meter.send()
			ctx.Respond(rdma.NewSend(m.Data))
		case *rdma.Closed:
			done <- m.Err
		case rdma.Failure:
			done <- m
		}
	}, rt.OnLoop()))
	if err := <-done; err != nil {
		return err
	}
	return rt.Shutdown(context.Background())
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

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("BUG: an argument of our own: " + err.Error())
	}
	return n
}
