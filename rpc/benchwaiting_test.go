package rpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkMaxWait is what calls that may wait for a place change: 16 places, and handlers that
// take 5 ms. A burst is 64 calls at once, and overload is calls at twice the rate that is answered,
// 6,400 in a second, whatever happens to earlier ones. An operation is one call.
func BenchmarkMaxWait(b *testing.B) {
	const places, took, burst = 16, 5 * time.Millisecond, 64
	for name, gap := range map[string]time.Duration{"burst": 5 * burst / places * took, "overload": burst * took / places / 2} {
		for _, wait := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond} {
			b.Run(name+"/"+wait.String(), func(b *testing.B) {
				_, clients := waitingServer(b, ServerConfig{MaxCallsInAll: places, MaxWait: wait}, func() { time.Sleep(took) })
				atOnce, pause := burst, gap
				if name == "overload" { // evenly
					atOnce, pause = 1, gap/burst
				}
				benchWaiting(b, clients, atOnce, pause)
			})
		}
	}
}

// waitingServer returns a server whose handler of work calls handled, and clients of it.
func waitingServer(tb testing.TB, cfg ServerConfig, handled func()) (s *Server, clients []*Client) {
	tb.Helper()
	p := echoPair(tb, HandlerConfig{})
	s = NewServer(p.there, cfg)
	tb.Cleanup(s.Close)
	HandleRaw(s, work, func(context.Context, []byte, []byte) ([]byte, error) { handled(); return nil, nil })
	at, err := s.Listen(tb.Context(), "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	for range 4 {
		c, err := Dial(tb.Context(), p.here, at.String())
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(c.Close)
		clients = append(clients, c)
	}
	return s, clients
}

// benchWaiting makes b.N calls, some at once, and then again after a pause.
func benchWaiting(b *testing.B, clients []*Client, atOnce int, pause time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var answered []time.Duration
	call := func(c *Client) {
		called := time.Now()
		_, err := CallRaw(b.Context(), c, work, nil, nil)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			answered = append(answered, time.Since(called))
		} else if !errors.Is(err, ErrOverloaded) {
			b.Error(err)
		}
	}
	b.ResetTimer()
	begun := time.Now()
	for i := range b.N {
		if i%atOnce == 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(i/atOnce) * pause)))
		}
		all.Go(func() { call(clients[i%len(clients)]) })
	}
	all.Wait()
	b.StopTimer()
	if n := len(answered); n > 0 {
		slices.Sort(answered)
		b.ReportMetric(100*float64(b.N-n)/float64(b.N), "%refused")
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "answered/s")
		b.ReportMetric(float64(answered[n/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(answered[n*99/100].Microseconds())/1000, "p99-ms")
	}
}
