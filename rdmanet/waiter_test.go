package rdmanet

import (
	"testing"
	"time"
)

// A timer that fires when it is too late to be stopped does not end a deadline that was set since,
// or none.
func TestLateTimer(t *testing.T) {
	for name, at := range map[string]time.Time{"none": {}, "later": time.Now().Add(time.Hour)} {
		w := waiter{wake: newWake()}
		w.setDeadline(time.Now().Add(2 * time.Hour))
		w.setDeadline(at)
		w.expire()
		if w.expired {
			t.Errorf("deadline %s: expired by the timer of another", name)
		}
		w.stopTimerLocked()
	}
}
