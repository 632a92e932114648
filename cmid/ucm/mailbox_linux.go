package ucm

import (
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// mailbox takes the results of calls off the loop back to the loop.
type mailbox struct {
	loop  *eventloop.Loop
	after func()        // is called when some have come back
	came  chan struct{} // has an element when something was put
	mu    sync.Mutex
	away  int // calls that have not come back
	back  []func()
	queue bool // Run is scheduled
}

// countCall counts a call that has begun.
func (m *mailbox) countCall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away++
}

// putResult ends a call: fn will run on the loop. Any goroutine.
func (m *mailbox) putResult(fn func()) {
	m.mu.Lock()
	m.away--
	m.back = append(m.back, fn)
	schedule := !m.queue
	m.queue = true
	m.mu.Unlock()
	if schedule {
		_ = m.loop.Schedule(m) // refused when the loop has ended: Close reads the rest
	}
	select {
	case m.came <- struct{}{}:
	default:
	}
}

// Run is on the loop.
func (m *mailbox) Run(int) bool {
	m.mu.Lock()
	list := m.back
	m.back, m.queue = nil, false
	m.mu.Unlock()
	for _, fn := range list {
		fn()
	}
	m.after()
	return false
}

// expectsResult reports whether the result of a call is still to come.
func (m *mailbox) expectsResult() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.away > 0
}

// awaitResults waits, on the loop, for the results of all calls, and reports whether some are late.
func (m *mailbox) awaitResults(d time.Duration) (late bool) {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	for {
		m.Run(0)
		m.mu.Lock()
		done := m.away == 0 && len(m.back) == 0
		m.mu.Unlock()
		if done {
			return false
		}
		select {
		case <-m.came:
		case <-timeout.C:
			return true
		}
	}
}
