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
	round := func() { passBy(t, n, 32) }
	goroutines := runtime.NumGoroutine()
	heap := func() uint64 {
		// an actor system's throttle of dead letters ends a second later
		eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= goroutines })
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
			time.Sleep(20 * time.Millisecond)
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round()
	first := heap()
	for range 3 {
		round()
	}
	if last := heap(); last > first+1<<20 {
		t.Errorf("%d KiB, and %d after one round", last>>10, first>>10)
	} else {
		t.Logf("%d KiB, and %d after one round", last>>10, first>>10)
	}
}

// passBy makes nodes connect to n, exchange a message each way with it, and end.
func passBy(t *testing.T, n *node, nodes int) {
	t.Helper()
	var all sync.WaitGroup
	for range nodes {
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
