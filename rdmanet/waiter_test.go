package rdmanet

import (
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A timer that fired before it could be stopped has no effect if the deadline was changed or
// removed since.
func TestLateTimer(t *testing.T) {
	for name, at := range map[string]time.Time{"none": {}, "later": time.Now().Add(time.Hour)} {
		w := waiter{rt: new(rdma.Runtime), wake: newWake()}
		w.setDeadline(time.Now().Add(2 * time.Hour))
		w.setDeadline(at)
		w.handleExpiry()
		if w.expired {
			t.Errorf("deadline %s: expired by the timer of another", name)
		}
		w.stopTimerLocked()
	}
}
