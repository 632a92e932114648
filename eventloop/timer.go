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

// timerFunc makes a timer's function a Runnable, for callbacks.run.
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
	l.checkGoroutine()
	if l.life.over.Load() {
		return
	}
	now := l.time.since(l.time.present())
	t.when = now + int64(max(d, 0))
	if t.when < now {
		t.when = math.MaxInt64 // further than 292 years
	}
	l.timers.put(&t.deadline)
	l.armHost()
}

// Stop disarms t and reports whether it was armed. After Stop the function does not run, also when
// it was due in this turn.
func (t *Timer) Stop() bool {
	l := t.l
	l.checkGoroutine()
	if t.index < 0 {
		return false
	}
	l.timers.remove(&t.deadline)
	l.armHost()
	return true
}

// armHost sets a host's timer after a change of the loop's timers, unless the end of the present
// Turn does that.
func (l *Loop) armHost() {
	if l.host.embedded != nil && !l.life.inTurn {
		l.host.arm(&l.timers, &l.time)
	}
}
