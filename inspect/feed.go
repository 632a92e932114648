package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errSlow: a feed has not answered even once yet.
var errSlow = errors.New("no answer yet")

// patience is the time limit for an answer of a feed. After that callers get the reading before.
const patience = 2 * time.Second

// feed reads something for all callers, at most once in an interval, and only on request. Its read
// function may block or panic: no caller waits for it longer than patience, and it is not called
// again before it has returned.
type feed[T any] struct {
	every time.Duration
	read  func() T

	mu     sync.Mutex
	latest reading[T]
	done   chan struct{} // closed when the call under way has returned; nil: none
}

// reading is the result of a feed's read.
type reading[T any] struct {
	value T
	taken time.Time // when the call began
	err   error     // the value is the one before, if any
}

// lateSeconds returns the reading's age beyond the interval, in seconds.
func (r reading[T]) lateSeconds(interval time.Duration) float64 {
	if r.taken.IsZero() {
		return 0
	}
	return max(time.Since(r.taken)-interval, 0).Round(time.Millisecond).Seconds()
}

// get returns the latest reading, of this interval if read returns.
func (f *feed[T]) get(ctx context.Context) (reading[T], error) {
	f.mu.Lock()
	if time.Since(f.latest.taken) < f.every {
		defer f.mu.Unlock()
		return f.latest, nil
	}
	if f.done == nil {
		f.done = make(chan struct{})
		go f.callRead(time.Now())
	}
	done := f.done
	f.mu.Unlock()
	slow := time.NewTimer(patience)
	defer slow.Stop()
	select {
	case <-done:
	case <-slow.C:
	case <-ctx.Done():
		return reading[T]{}, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest.taken.IsZero() {
		return f.latest, errSlow
	}
	return f.latest, nil
}

// callRead calls read, and survives its panics.
func (f *feed[T]) callRead(began time.Time) {
	var value T
	err := errors.New("it has ended its goroutine") // unless it returns or panics
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it has panicked: %v", p)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.latest.taken, f.latest.err = began, err
		if err == nil {
			f.latest.value = value
		}
		close(f.done)
		f.done = nil
	}()
	value = f.read()
	err = nil
}
