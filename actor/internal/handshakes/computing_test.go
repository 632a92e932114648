package handshakes

import (
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// At most Most steps are computed at a time, and addresses take turns. A step that panics or ends
// its goroutine leaves its place.
func TestComputingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Computing{Most: 2}
		var mu sync.Mutex
		var order []string
		busy := 0
		step := func(name string, last func()) {
			c.Do(netip.MustParseAddr("10.0.0."+name[:1]), func() {
				defer last()
				mu.Lock()
				busy++
				most := busy
				order = append(order, name)
				mu.Unlock()
				if most > c.Most {
					t.Errorf("%d steps at a time", most)
				}
				time.Sleep(time.Second)
				mu.Lock()
				busy--
				mu.Unlock()
			})
		}
		for _, name := range []string{"1a", "1b", "1c", "1d", "1e", "1f", "2a", "2b", "3a"} {
			step(name, func() {})
		}
		step("3b", runtime.Goexit)
		time.Sleep(time.Minute)
		synctest.Wait()
		// the last two are computed at the same time, and either may be noted first
		if len(order) != 10 || c.steps.Running() != 0 || slices.Index(order, "3a") > 5 || slices.Index(order, "1f") < 8 {
			t.Errorf("%d steps are left, and the order was %v", c.steps.Running(), order)
		}
	})
}
