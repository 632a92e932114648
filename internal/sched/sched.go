// Package sched decides when goroutines run that are not a loop's: handlers of calls, callers that
// wait for an answer, readers of a stream, actors that may block.
//
// A program has no Scheduler: its pointer is nil, and Go decides. A simulation has one for each
// process it plays. Its goroutines then run one at a time, in the order that a seed decides. Three
// rules make that work. Such a goroutine is started by Go, AfterFunc or OnDone. It calls Resume
// when a wait has ended, before it touches anything that others can see. And it keeps no other lock
// than a Lock while it waits.
package sched

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Scheduler is how a simulation decides when the goroutines of one process run. A nil *Scheduler
// leaves that to Go. Any goroutine may call its methods.
type Scheduler struct {
	// Turn returns a function for separate goroutines: there it waits for its turn, and then calls
	// fn. If the process has ended it ends the goroutine. Turn is called when a
	// start is decided, not when it happens. So the order of the calls is the seed's, and the
	// simulation knows goroutines by it that come at the same time. What Turn returns may be
	// started any number of times, and need not be.
	Turn func(fn func()) func()
	// Wait is called on a goroutine whose wait has ended. It returns when the goroutine may go on,
	// and ends the goroutine if its process has ended. It may be a goroutine that
	// Turn has not seen: the simulation's own, or a loop's.
	Wait func()
	// Source is where random numbers come from. It is used by one goroutine at a time.
	Source rand.Source
	// Handles is the last handle of an identifier. All processes of a simulation share it, so that
	// the handles in errors and names of actors are the same in each run. nil: handles are numbered
	// over the whole program.
	Handles *atomic.Uint64
}

// Go runs fn on a separate goroutine.
func (s *Scheduler) Go(fn func()) {
	if s != nil {
		fn = s.Turn(fn)
	}
	go fn()
}

// Resume is called after each wait: a receive from a channel, a select, a WaitGroup. The caller
// must not have locked anything but a Lock.
func (s *Scheduler) Resume() {
	if s != nil {
		s.Wait()
	}
}

// Await waits until c or d is closed, and then reports whether c is. It is Resume, too.
func (s *Scheduler) Await(c, d <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
	}
	select {
	case <-c:
	case <-d:
	}
	s.Resume()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// AfterFunc is time.AfterFunc.
func (s *Scheduler) AfterFunc(d time.Duration, fn func()) *time.Timer {
	if s != nil {
		fn = s.Turn(fn)
	}
	return time.AfterFunc(d, fn)
}

// OnDone is context.AfterFunc.
func (s *Scheduler) OnDone(ctx context.Context, fn func()) (stop func() bool) {
	if s != nil {
		fn = s.Turn(fn)
	}
	return context.AfterFunc(ctx, fn)
}

// HandleCounter returns Handles.
func (s *Scheduler) HandleCounter() *atomic.Uint64 {
	if s == nil {
		return nil
	}
	return s.Handles
}

// Uint64 makes a Scheduler a rand.Source.
func (s *Scheduler) Uint64() uint64 {
	if s == nil {
		return rand.Uint64()
	}
	return s.Source.Uint64()
}

// Rand gives random numbers.
func (s *Scheduler) Rand() *rand.Rand { return rand.New(s) }
