package rpc

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

var benchEcho = NewRawMethod("bench.Echo")

// pair is a server and a client over iWARP on loopback, each with a runtime.
type pair struct {
	client *Client
	server *Server
	here   *rdma.Runtime // the client's
	there  *rdma.Runtime // the server's
	at     rdma.Addr
}

// echoPair returns a pair whose server echoes.
func echoPair(tb testing.TB, cfg HandlerConfig, more ...func(*Server)) *pair {
	tb.Helper()
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	open := func() *rdma.Runtime {
		rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New()})
		if err != nil {
			tb.Fatal(err)
		}
		return rt
	}
	here, there := open(), open()
	s := NewServer(there)
	HandleRaw(s, benchEcho, echoBytes, cfg)
	for _, setup := range more {
		setup(s)
	}
	at, err := s.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c, err := Dial(context.Background(), here, at.String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		c.Close()
		s.Close()
		for _, rt := range []*rdma.Runtime{here, there} {
			if err := rt.Shutdown(context.Background()); err != nil {
				tb.Error(err)
			}
		}
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
	})
	return &pair{c, s, here, there, at}
}

func echoBytes(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// callers makes b.N calls of 64 bytes on n goroutines.
func callers(b *testing.B, c *Client, n int) {
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			q := make([]byte, 64)
			var reply []byte
			for range b.N/n + min(1, max(0, b.N%n-i)) {
				var err error
				if reply, err = CallRaw(context.Background(), c, benchEcho, q, reply[:0]); err != nil || len(reply) != len(q) {
					b.Error(len(reply), err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkUnary is one caller: 64 bytes there and back, both sides in this process.
func BenchmarkUnary(b *testing.B) {
	b.Run("OnLoop", func(b *testing.B) { callers(b, echoPair(b, HandlerConfig{OnLoop: true}).client, 1) })
	b.Run("Goroutine", func(b *testing.B) { callers(b, echoPair(b, HandlerConfig{}).client, 1) })
}

// BenchmarkUnary64Callers is 64 goroutines that call over one connection.
func BenchmarkUnary64Callers(b *testing.B) {
	b.Run("OnLoop", func(b *testing.B) { callers(b, echoPair(b, HandlerConfig{OnLoop: true}).client, 64) })
	b.Run("Goroutine", func(b *testing.B) { callers(b, echoPair(b, HandlerConfig{}).client, 64) })
}
