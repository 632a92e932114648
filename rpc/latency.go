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
	// the longest call, which counts less the longer ago it was, and when it ended
	longest, at atomic.Int64
	// the last answer, or when the only call in flight began
	heard atomic.Int64
}

// latencyFades is the time in which a latency counts e times less. latencyFloor is what no server
// is better than: below that, calls in flight say more about its load.
const (
	latencyFades = time.Second
	latencyFloor = time.Millisecond
)

// begin takes the begin of a call.
func (l *latency) begin(at time.Time) {
	if l.calls.Add(1) == 1 {
		l.heard.Store(at.UnixNano())
	}
}

// end takes how long a call has taken, and whether the server has answered it.
func (l *latency) end(took time.Duration, now time.Time, answered bool) {
	l.calls.Add(-1)
	if answered {
		l.heard.Store(now.UnixNano())
	}
	if took > l.faded(now) {
		l.longest.Store(int64(took))
		l.at.Store(now.UnixNano())
	}
}

// faded returns the latency of past calls.
func (l *latency) faded(now time.Time) time.Duration {
	age := time.Duration(now.UnixNano() - l.at.Load())
	return time.Duration(float64(l.longest.Load()) * math.Exp(-age.Seconds()/latencyFades.Seconds()))
}

// expected returns how long a call may take: a server that answers none of its calls is as slow as
// it has been silent.
func (l *latency) expected(now time.Time) time.Duration {
	d := max(l.faded(now), latencyFloor)
	if l.calls.Load() > 0 {
		d = max(d, time.Duration(now.UnixNano()-l.heard.Load()))
	}
	return d
}
