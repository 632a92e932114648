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
				clients := waitingServer(b, ServerConfig{MaxCallsInAll: places, MaxWait: wait}, took)
				atOnce, pause := burst, gap
				if name == "overload" { // evenly
					atOnce, pause = 1, gap/burst
				}
				benchWaiting(b, clients, atOnce, pause)
			})
		}
	}
}

// waitingServer returns clients of a server whose handler takes some time, and no processor.
func waitingServer(b *testing.B, cfg ServerConfig, took time.Duration) (clients []*Client) {
	p := echoPair(b, HandlerConfig{})
	s := NewServer(p.there, cfg)
	b.Cleanup(s.Close)
	HandleRaw(s, work, func(context.Context, []byte, []byte) ([]byte, error) { time.Sleep(took); return nil, nil })
	at, err := s.Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	for range 4 {
		c, err := Dial(b.Context(), p.here, at.String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		clients = append(clients, c)
	}
	return clients
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
