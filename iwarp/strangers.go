package iwarp

import (
	"sync"
	"time"
)

// A stranger is a peer that connects to a listener and sends no MPA Request: a browser, a health
// check, a port scan. There may be any number of them, so all are counted and few are logged.

// strangersEvery is the least time between two strangers that a device logs.
const strangersEvery = time.Minute

// strangers limits how often a device logs a stranger. Any goroutine.
type strangers struct {
	mu       sync.Mutex
	next     time.Time
	unlogged int // strangers since the last one that was logged
}

// shouldLog reports whether this stranger is to be logged, and how many before it were not.
func (s *strangers) shouldLog(now time.Time) (unlogged int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		s.unlogged++
		return 0, false
	}
	unlogged, s.unlogged, s.next = s.unlogged, 0, now.Add(strangersEvery)
	return unlogged, true
}
