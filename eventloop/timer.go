package eventloop

import (
	"math"
	"time"
)

// Timer runs a function on its loop once, some time after it was armed. All methods belong to the loop's goroutine (or before the
// loop runs). A Timer may be armed again and again without allocating.
type Timer struct {
	l     *Loop
	task  Runnable // timerFunc
	when  int64    // nanoseconds since the loop's base
	seq   uint64   // order of arming, among equal times
	index int      // in the heap, -1 while unarmed
}

// timerFunc is a timer's function as the funnel of callbacks takes it.
type timerFunc func()

func (f timerFunc) Run(int) bool {
	f()
	return false
}

// NewTimer makes an unarmed timer; Reset arms it.
func (l *Loop) NewTimer(fn func()) *Timer {
	return &Timer{l: l, task: timerFunc(fn), index: -1}
}

// AfterFunc makes a timer and arms it: fn runs on the loop, not before d has passed. 0 or less means the next turn, never inside
// the call. Timers fire in the order of their times, equal ones in the order they were armed.
func (l *Loop) AfterFunc(d time.Duration, fn func()) *Timer {
	t := l.NewTimer(fn)
	t.Reset(d)
	return t
}

// Reset arms t, or moves it when it is armed, to run d from now (the clock's now, not the turn's).
// 0 or less means the next turn. It does nothing when the loop has ended.
func (t *Timer) Reset(d time.Duration) {
	l := t.l
	l.checkOwner()
	if l.life.over.Load() {
		return
	}
	h := &l.timers
	now := l.sinceBase(l.clock.Now())
	t.when = now + int64(max(d, 0))
	if t.when < now {
		t.when = math.MaxInt64 // further than 292 years
	}
	h.seq++
	t.seq = h.seq
	if t.index >= 0 {
		h.fix(t.index)
	} else {
		h.push(t)
		l.timerCount.Store(int64(len(h.heap)))
	}
	if l.embedded.fd != nil && !l.embedded.inTurn {
		l.armHosted()
	}
}

// Stop disarms t and reports whether it was armed. After Stop the function does not run, also when it was due in this turn.
func (t *Timer) Stop() bool {
	l := t.l
	l.checkOwner()
	if t.index < 0 {
		return false
	}
	l.timers.remove(t.index)
	l.timerCount.Store(int64(len(l.timers.heap)))
	if l.embedded.fd != nil && !l.embedded.inTurn {
		l.armHosted()
	}
	return true
}

// fireTimers runs the timers that are due and were armed before this turn's timers began, so that a timer that arms itself for
// now does not hold the turn. It returns how many ran.
func (l *Loop) fireTimers() (fired int) {
	h := &l.timers
	if len(h.heap) == 0 {
		return 0
	}
	now, last := l.sinceBase(l.now), h.seq
	for len(h.heap) > 0 {
		t := h.heap[0]
		if t.when > now || t.seq > last {
			break
		}
		h.remove(0)
		l.timerCount.Store(int64(len(h.heap)))
		l.call(&t.task)
		fired++
	}
	return fired
}

// untilTimer is how long until the earliest timer: negative for none. It reads the clock, because the turn took time.
func (l *Loop) untilTimer() time.Duration {
	if len(l.timers.heap) == 0 {
		return -1
	}
	return time.Duration(max(l.timers.heap[0].when-l.sinceBase(l.clock.Now()), 0))
}

// sinceBase makes times cheap to compare; the base carries a monotonic reading where the clock does.
func (l *Loop) sinceBase(t time.Time) int64 { return int64(t.Sub(l.base)) }

// timerHeap is a binary heap by time, then by order of arming.
type timerHeap struct {
	heap []*Timer
	seq  uint64
}

func (t *Timer) before(u *Timer) bool {
	return t.when < u.when || t.when == u.when && t.seq < u.seq
}

func (h *timerHeap) push(t *Timer) {
	t.index = len(h.heap)
	h.heap = append(h.heap, t)
	h.up(t.index)
}

func (h *timerHeap) remove(i int) {
	last := len(h.heap) - 1
	h.heap[i].index = -1
	moved := h.heap[last]
	h.heap[last] = nil
	h.heap = h.heap[:last]
	if i != last {
		h.heap[i] = moved
		moved.index = i
		h.fix(i)
	}
}

// fix puts the timer at i, whose time changed, where it belongs.
func (h *timerHeap) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *timerHeap) up(i int) {
	t := h.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(h.heap[parent]) {
			break
		}
		h.heap[i] = h.heap[parent]
		h.heap[i].index = i
		i = parent
	}
	h.heap[i] = t
	t.index = i
}

func (h *timerHeap) down(start int) (moved bool) {
	t, i := h.heap[start], start
	for {
		child := 2*i + 1
		if child >= len(h.heap) {
			break
		}
		if right := child + 1; right < len(h.heap) && h.heap[right].before(h.heap[child]) {
			child = right
		}
		if !h.heap[child].before(t) {
			break
		}
		h.heap[i] = h.heap[child]
		h.heap[i].index = i
		i = child
	}
	h.heap[i] = t
	t.index = i
	return i > start
}
