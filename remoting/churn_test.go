package remoting_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/remoting"
)

// Of many nodes that come, talk and go nothing is left: no peer, no goroutine, no memory.
func TestNothingIsLeftOfMany(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything, Patience: 100 * time.Millisecond})
	n.spawn("echo", echo)
	n.events.stop()
	round := func() {
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				c := open(t, remoting.Config{Expose: everything}, 1)
				defer c.end()
				c.spawn("echo", echo)
				if _, err := c.ask(n.pid("echo"), text("x")); err != nil {
					t.Error(err)
				}
				if _, err := n.ask(c.pid("echo"), text("x")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		eventually(t, "they are not forgotten", func() bool { return len(n.Peers()) == 0 })
	}
	used := func() (goroutines int, heap uint64) {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
			time.Sleep(20 * time.Millisecond)
		}
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	round()
	goroutines, heap := used()
	for range 3 {
		round()
	}
	g, h := used()
	// an actor system's throttle of dead letters ends a second later
	for over := time.Now().Add(soon); g > goroutines+2 && time.Now().Before(over); g, h = used() {
		time.Sleep(10 * time.Millisecond)
	}
	if g > goroutines+2 || h > heap+4<<20 {
		t.Errorf("%d goroutines and %d KiB, after one round %d and %d", g, h>>10, goroutines, heap>>10)
	}
}
