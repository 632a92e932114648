package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Retry says when a call is repeated. What may have been executed is repeated only if its method is Idempotent.
type Retry struct {
	Attempts int           // in all; 0 and 1: no repetition
	Backoff  time.Duration // before the second attempt, twice as long before each that follows, a quarter more or less: 10 ms
	Max      time.Duration // what the backoff grows to: 1 s
}

// WithRetry has calls repeated that failed because the server refused them (ErrOverloaded, ErrDraining) or because there is no connection
// (ErrUnavailable), while their context lets them. Streams are not repeated.
func WithRetry(r Retry) ClientOption {
	if r.Backoff <= 0 {
		r.Backoff = 10 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = time.Second
	}
	return clientOption(func(c *clientConfig) { c.retry = r })
}

// retryable reports whether a call of m that failed so may be made again.
func retryable(m *method, err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case CodeOverloaded, CodeDraining:
		return e.Fate.NotExecuted()
	case CodeUnavailable:
		return e.Fate.NotExecuted() || m.idempotent && e.Fate != FateAnswered
	}
	return false
}

// again waits before the next attempt. Not ok: there is none, or no time for it.
func (r *Retry) again(ctx context.Context, attempt int) (ok bool) {
	if attempt >= r.Attempts {
		return false
	}
	d := doubled(r.Backoff, r.Max, attempt-1)
	d += time.Duration((rand.Float64() - 0.5) / 2 * float64(d))
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// doubled is first, doubled n times, but not more than most.
func doubled(first, most time.Duration, n int) time.Duration {
	if n < 32 && first < most>>n {
		return first << n
	}
	return most
}
