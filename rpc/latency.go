package rpc

import (
	"math"
	"sync/atomic"
	"time"
)

// latency is how long the calls of a server take, without streams. It is changed with out.mu
// locked, and read on any goroutine. Times are in ns since 1970.
type latency struct {
	calls atomic.Int32 // in flight for their callers
	// how long a call takes: the longest one, less what later answers and time take off, and when
	// it was set
	longest, at atomic.Int64
	// start of the present silence: the last answer, or when the only call in flight began, less
	// the silence in which earlier ones were given up
	heard  atomic.Int64
	silent atomic.Bool // the last call was given up
}

// latencyFades is the time in which a latency counts e times less. One of latencyAnswers of what it
// exceeds a later answer is taken off. latencyFloor is what no server is better than: below that,
// calls in flight say more about its load.
const (
	latencyFades   = time.Second
	latencyAnswers = 8
	latencyFloor   = time.Millisecond
)

// callBegun counts a call that begins.
func (l *latency) callBegun(at time.Time) {
	if l.calls.Add(1) > 1 {
		return
	}
	since := at.UnixNano()
	if l.silent.Load() {
		since -= int64(l.fadedLatency(at))
	}
	l.heard.Store(since)
}

// callEnded counts the end of a call, its duration and its result. code 0: it was answered.
func (l *latency) callEnded(took time.Duration, now time.Time, code Code) {
	l.calls.Add(-1)
	silent := code == CodeCanceled || code == CodeDeadline
	if l.silent.Store(silent); silent {
		took = max(took, time.Duration(now.UnixNano()-l.heard.Load()))
	} else {
		l.heard.Store(now.UnixNano())
	}
	past := l.fadedLatency(now)
	switch {
	case took > past:
		past = took
	case code == 0:
		past -= (past - took) / latencyAnswers
	default: // it may be a refusal
		return
	}
	l.longest.Store(int64(past))
	l.at.Store(now.UnixNano())
}

// forgetPast forgets past calls.
func (l *latency) forgetPast() { l.longest.Store(0) }

// fadedLatency returns the latency of past calls.
func (l *latency) fadedLatency(now time.Time) time.Duration {
	age := time.Duration(now.UnixNano() - l.at.Load())
	return time.Duration(float64(l.longest.Load()) * math.Exp(-age.Seconds()/latencyFades.Seconds()))
}

// expectedLatency returns how long a call may take: a server that answers none of its calls is as
// slow as it has been silent.
func (l *latency) expectedLatency(now time.Time) time.Duration {
	d := max(l.fadedLatency(now), latencyFloor)
	if l.calls.Load() > 0 {
		d = max(d, time.Duration(now.UnixNano()-l.heard.Load()))
	}
	return d
}
