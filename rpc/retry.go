package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// isRetryable reports whether a call that failed with err may be made again.
func isRetryable(idempotent bool, err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case CodeOverloaded, CodeDraining:
		return e.Fate.NotExecuted()
	case CodeUnavailable:
		return e.Fate.NotExecuted() || idempotent && e.Fate != FateAnswered
	}
	return false
}

// mayRepeat reports whether attempt, counted from 1, is not the last one.
func (r *Retry) mayRepeat(attempt int) bool { return attempt < r.Attempts }

// backoffAfter returns the wait after attempt, before it is varied.
func (r *Retry) backoffAfter(attempt int) time.Duration {
	first := positiveOr(r.Backoff, 10*time.Millisecond)
	return reconnect.Backoff{First: first, Most: max(positiveOr(r.Max, time.Second), first)}.Longest(attempt - 1)
}

// waitBackoff waits before the next attempt. Not ok: there is no time for it.
func (r *Retry) waitBackoff(ctx context.Context, s *sched.Scheduler, attempt int) (ok bool) {
	d := r.backoffAfter(attempt)
	d += time.Duration((s.Rand().Float64() - 0.5) / 2 * float64(d))
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	s.Resume()
	return ctx.Err() == nil
}
