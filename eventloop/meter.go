package eventloop

import (
	"sync/atomic"
	"time"
)

// meter measures turns. A turn begins when the loop has asked for ready fds, and ends before the
// loop waits. A turn that is followed by another one without a wait ends where that begins, because
// reading the clock twice would cost more than most turns do. Times count from turnClock.base.
type meter struct {
	// The loop's.
	open   bool  // a turn is in progress
	worked bool  // the turn has work, as far as known
	ended  int64 // end of the last turn

	// Written by the loop, for any goroutine to read.
	began       atomic.Int64 // start of the last turn
	busy        atomic.Int64
	longest     atomic.Int64
	window      atomic.Int64 // index of the period that recent covers
	recent      atomic.Int64 // longest turn in this period
	before      atomic.Int64 // longest turn in the previous period
	longestWait atomic.Int64
}

// recentFor is for how long a turn is at least remembered as a recent one; at most twice as long.
const recentFor = int64(10 * time.Second)

// beginTurn begins a turn.
func (m *meter) beginTurn(now int64) {
	if m.open {
		m.endTurn(now)
	}
	if d := now - m.ended; d > m.longestWait.Load() {
		m.longestWait.Store(d)
	}
	m.open, m.worked = true, true
	m.began.Store(now)
}

// endTurn ends a turn.
func (m *meter) endTurn(now int64) {
	if !m.open {
		return
	}
	m.open, m.ended = false, now
	if !m.worked {
		return
	}
	d := now - m.began.Load()
	m.busy.Store(m.busy.Load() + d)
	if d > m.longest.Load() {
		m.longest.Store(d)
	}
	if w, was := now/recentFor, m.window.Load(); w != was {
		before := int64(0)
		if w == was+1 {
			before = m.recent.Load()
		}
		m.before.Store(before)
		m.recent.Store(0)
		m.window.Store(w)
	}
	if d > m.recent.Load() {
		m.recent.Store(d)
	}
}

// longestRecent returns the duration of the longest turn that finished in this period of recentFor
// or in the previous one. Any goroutine may call it.
func (m *meter) longestRecent(now int64) time.Duration {
	switch now/recentFor - m.window.Load() {
	case 0:
		return time.Duration(max(m.recent.Load(), m.before.Load()))
	case 1:
		return time.Duration(m.recent.Load())
	}
	return 0
}

// inTurn returns how long the present turn has lasted; 0: no callback runs. Any goroutine.
func (l *Loop) inTurn() time.Duration {
	if l.calls.holder.Load() == nil {
		return 0
	}
	return max(time.Duration(l.time.elapsed()-l.meter.began.Load()), 0)
}
