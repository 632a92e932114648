package main

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// tally counts the work of a process. Any goroutine may use it.
type tally struct {
	mu           sync.Mutex
	done, errors map[string]uint64
	wrong        []string
	open         map[uint64]*attempt
	attempts     uint64
}

// attempt is a piece of work under way.
type attempt struct {
	work string
	left int // beats
}

// beat is the interval of a process's reports. A stopped process has no beats, so time limits of
// its work are counted in beats.
const beat = 500 * time.Millisecond

func newTally() *tally {
	return &tally{done: make(map[string]uint64), errors: make(map[string]uint64), open: make(map[uint64]*attempt)}
}

// beginWork records the start of work that must end within the given time, measured by this
// process.
func (t *tally) beginWork(work string, within time.Duration) (end func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts++
	n := t.attempts
	t.open[n] = &attempt{work, int(within / beat)}
	return func(err error) {
		t.mu.Lock()
		delete(t.open, n)
		t.mu.Unlock()
		t.countWork(work, err)
	}
}

// countWork records that work has ended, and how.
func (t *tally) countWork(work string, err error) {
	if err == nil {
		t.mu.Lock()
		t.done[work]++
		t.mu.Unlock()
		return
	}
	name, expected := nameOf(err)
	if !expected {
		t.recordFault("%s: %v", work, err)
	}
	t.mu.Lock()
	t.errors[work+": "+name]++
	t.mu.Unlock()
}

// recordFault records an event that must never happen.
func (t *tally) recordFault(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const enough = 20
	if len(t.wrong) < enough {
		t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	}
}

// takeSample returns the work since the last sample, and what has taken too long, at each beat.
func (t *tally) takeSample() sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.open {
		if a.left--; a.left == 0 {
			t.wrong = append(t.wrong, "it does not end: "+a.work)
		}
	}
	s := sample{At: time.Now(), Done: maps.Clone(t.done), Errors: maps.Clone(t.errors), Wrong: t.wrong}
	t.wrong = nil
	return s
}
