// Package sched decides when goroutines run that are not a loop's: handlers of calls, callers that
// wait for an answer, readers of a stream, actors that may block.
//
// A program has no Scheduler: its pointer is nil, and Go decides. A simulation has one for each
// process it plays. Its goroutines then run one at a time, in the order that a seed decides. Two
// rules make that work. Such a goroutine is started by Go or AfterFunc. And it calls Resume when a
// wait has ended, before it touches anything that others can see.
package sched

import (
	"math/rand/v2"
	"time"
)

// Scheduler is how a simulation decides when the goroutines of one process run. A nil *Scheduler
// leaves that to Go. Any goroutine may call its methods.
type Scheduler struct {
	// Start runs fn on a goroutine of its own, not inside the call.
	Start func(fn func())
	// Wait is called on a goroutine whose wait has ended. It returns when the goroutine may go on,
	// and ends the goroutine (runtime.Goexit) if its process has ended.
	Wait func()
	// After is time.AfterFunc. The goroutine that runs fn waits for its turn first.
	After func(d time.Duration, fn func()) *time.Timer
	// Source is where random numbers come from. It is used by one goroutine at a time.
	Source rand.Source
}

// Go runs fn on a goroutine of its own.
func (s *Scheduler) Go(fn func()) {
	if s == nil {
		go fn()
		return
	}
	s.Start(fn)
}

// Resume is called after each wait: a receive from a channel, a select, a WaitGroup. The caller
// must not have locked anything.
func (s *Scheduler) Resume() {
	if s != nil {
		s.Wait()
	}
}

// AfterFunc is time.AfterFunc.
func (s *Scheduler) AfterFunc(d time.Duration, fn func()) *time.Timer {
	if s == nil {
		return time.AfterFunc(d, fn)
	}
	return s.After(d, fn)
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
