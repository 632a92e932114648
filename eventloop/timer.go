package eventloop

import (
	"math"
	"time"
)

// Timer runs a function on its loop once, some time after it was armed. All methods belong to the
// loop's goroutine (or before the loop runs). A Timer may be armed again and again without
// allocating.
type Timer struct {
	l *Loop
	deadline
}

// timerFunc makes a timer's function a Runnable, for runCallback.
type timerFunc func()

func (f timerFunc) Run(int) bool {
	f()
	return false
}

func (f timerFunc) identifyCallback() (Holder, any) { return Holder{"timer", functionName(f)}, nil }

// NewTimer makes an unarmed timer; Reset arms it.
func (l *Loop) NewTimer(fn func()) *Timer {
	return &Timer{l, deadline{task: timerFunc(fn), index: -1}}
}

// AfterFunc makes a timer and arms it: fn runs on the loop, not before d has passed. 0 or less
// means the next turn, never inside the call. Timers fire in the order of their times, equal ones
// in the order they were armed.
func (l *Loop) AfterFunc(d time.Duration, fn func()) *Timer {
	t := l.NewTimer(fn)
	t.Reset(d)
	return t
}

// Reset arms t, or moves it when it is armed, to run in d from the clock's time, not the turn's. 0
// or less means the next turn. It does nothing when the loop has ended.
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
	h.put(&t.deadline)
	l.timerCount.Store(int64(len(h.heap)))
	if l.embedded != nil && !l.life.inTurn {
		l.armHosted()
	}
}

// Stop disarms t and reports whether it was armed. After Stop the function does not run, also when
// it was due in this turn.
func (t *Timer) Stop() bool {
	l := t.l
	l.checkOwner()
	if t.index < 0 {
		return false
	}
	l.timers.remove(&t.deadline)
	l.timerCount.Store(int64(len(l.timers.heap)))
	if l.embedded != nil && !l.life.inTurn {
		l.armHosted()
	}
	return true
}

// fireTimers runs the timers that are due, and returns how many ran. It leaves out those that are
// armed while it runs: otherwise a timer that arms itself for now would keep the turn from ending.
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
		h.remove(t)
		l.timerCount.Store(int64(len(h.heap)))
		l.runCallback(&t.task)
		fired++
	}
	return fired
}

// untilTimer returns how long it is from now until the earliest timer: negative for none.
func (l *Loop) untilTimer(now int64) time.Duration {
	if len(l.timers.heap) == 0 {
		return -1
	}
	return time.Duration(max(l.timers.heap[0].when-now, 0))
}

// sinceBase turns a time into a number, which is cheap to compare. The base has a monotonic
// reading where the clock has one.
func (l *Loop) sinceBase(t time.Time) int64 { return int64(t.Sub(l.base)) }

// nowSinceBase returns the current time since the loop's base. Of the wall clock only the monotonic
// half is read, which costs half as much. Any goroutine.
func (l *Loop) nowSinceBase() int64 {
	if l.cfg.Clock == nil {
		return int64(time.Since(l.base))
	}
	return l.sinceBase(l.clock.Now())
}

// armHosted sets the timerfd to the earliest timer, if it is not set to it already.
func (l *Loop) armHosted() {
	next := int64(never)
	if len(l.timers.heap) > 0 {
		next = l.timers.heap[0].when
	}
	if next == l.armed {
		return
	}
	if err := l.embedded.armTimer(l.untilTimer(l.nowSinceBase())); err != nil {
		l.log.Error("eventloop: timerfd", "loop", l.cfg.Name, "err", err)
		return
	}
	l.armed = next
}

const never = math.MaxInt64
