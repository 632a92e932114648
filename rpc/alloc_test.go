package rpc

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/share"
)

// A call of bytes allocates its handler's context, and on the loop nothing: client, server and
// both runtimes together.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, c := range map[string]struct {
		cfg  HandlerConfig
		most float64
		pool bool
	}{
		"loop": {cfg: HandlerConfig{OnLoop: true}, most: 0.2}, "goroutine": {most: 1.2},
		"pool": {cfg: HandlerConfig{OnLoop: true}, most: 0.2, pool: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := echoPair(t, c.cfg)
			client := p.client
			if c.pool {
				other := echoPair(t, c.cfg)
				client = NewPool(p.here, Static(p.at.String(), other.at.String()))
				defer client.Close()
			}
			q, reply := make([]byte, 64), make([]byte, 0, 64)
			const calls = 5000
			var before, after runtime.MemStats
			for range 2 { // the first round fills the pools
				runtime.ReadMemStats(&before)
				for range calls {
					var err error
					if reply, err = CallRaw(context.Background(), client, benchEcho, q, reply[:0]); err != nil {
						t.Fatal(err)
					}
				}
				runtime.ReadMemStats(&after)
			}
			if n := float64(after.Mallocs-before.Mallocs) / calls; n > c.most {
				t.Errorf("%.2f allocations per call, want at most %.1f", n, c.most)
			}
		})
	}
}

// A call that waits for a place allocates no more than another one.
func TestAllocationsOfWaitingCalls(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const calls = 1000
	var s *Server
	waited := 0
	s, clients := waitingServer(t, ServerConfig{MaxCallsInAll: 1, MaxWait: time.Minute}, func() {
		// The other client calls again, unless it has made all its calls.
		for end := time.Now().Add(time.Millisecond); s.shares.Taken()[share.Waiting] == 0 && time.Now().Before(end); {
			time.Sleep(10 * time.Microsecond)
		}
		waited += s.shares.Taken()[share.Waiting] // one handler runs at a time
	})
	round := func() {
		var all sync.WaitGroup
		for _, c := range clients[:2] {
			all.Go(func() {
				for range calls {
					if _, err := CallRaw(context.Background(), c, work, nil, nil); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	var before, after runtime.MemStats
	for range 2 { // the first round fills the pools
		runtime.ReadMemStats(&before)
		round()
		runtime.ReadMemStats(&after)
	}
	if n := float64(after.Mallocs-before.Mallocs) / (2 * calls); n > 1.3 || waited < calls {
		t.Errorf("%.2f allocations per call; during %d of %d calls another one has waited", n, waited, 4*calls)
	}
}

// An item allocates what its receiver gets: a message and its bytes, and nothing if the receiver
// has memory for both.
func TestAllocationsOfItems(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d, err := OpenBidiStream(t.Context(), echoPair(t, HandlerConfig{}, handleBenchStreams).client, benchTalk)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const items = 5000
	var before, after runtime.MemStats
	for range 2 { // the first round fills the pools
		runtime.ReadMemStats(&before)
		for range items {
			q := make(Bytes, 64)
			if err := d.Send(&q); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Receive(); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
	}
	// 2 are this function's: Send's argument escapes
	if n := float64(after.Mallocs-before.Mallocs) / items; n > 2+2+2+0.3 {
		t.Errorf("%.2f allocations per item that comes back", n)
	}
	runtime.ReadMemStats(&before)
	q, got := make(Bytes, 64), make(Bytes, 0, 64)
	for i := range items {
		q[0] = byte(i)
		if err := d.Send(&q); err != nil {
			t.Fatal(err)
		}
		if err := d.ReceiveInto(&got); err != nil || !slices.Equal(got, q) {
			t.Fatalf("item %d came as %v: %v", i, got, err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / items; n > 2+0.3 { // the handler's
		t.Errorf("%.2f allocations per item that is received into the same memory", n)
	}
}
