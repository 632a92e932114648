package actor

import (
	"context"
	"time"
)

// abortFor is how long Shutdown waits, after its context has ended, for the identifiers that it
// destroys only then: most devices return them immediately. It does not wait for those that were
// being destroyed before. The error names those that are not returned.
const abortFor = time.Second

// askLoops asks every loop that has not ended. If one is blocked for longer than abortFor, blocked
// is true, and the answers are those of the other loops until then. On a loop's goroutine only that
// loop is asked: a loop must not wait for another.
func askLoops[T any](rt *Runtime, ask func(*loop) T) (answers []T, blocked bool) {
	if l := rt.currentLoop(); l != nil {
		return []T{ask(l)}, false
	}
	answered := make(chan T, len(rt.loops))
	left := 0
	for _, l := range rt.loops {
		if l.el.Post(func() { answered <- ask(l); l.el.Handoff() }) == nil {
			left++
		}
	}
	patience := time.NewTimer(abortFor)
	defer patience.Stop()
	for len(answers) < left && !blocked {
		select {
		case a := <-answered:
			answers = append(answers, a)
		case <-patience.C:
			blocked = true
		}
		rt.Scheduler().Resume()
		for len(answered) > 0 {
			answers = append(answers, <-answered)
		}
	}
	return answers, len(answers) < left
}

// answerIn is how long Inspect and Loops wait for the loops' answers.
const answerIn = 100 * time.Millisecond

// awaitAnswers waits for loops' answers, for at most answerIn altogether, and reports for each loop
// whether it has answered.
func (rt *Runtime) awaitAnswers(asked []<-chan struct{}) (answered []bool) {
	patience, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	answered = make([]bool, len(asked))
	for i, a := range asked {
		answered[i] = a != nil && rt.Scheduler().Await(a, patience.Done())
	}
	return answered
}

// currentLoop returns the loop on whose goroutine it is called; nil: it was called on another
// goroutine.
func (rt *Runtime) currentLoop() *loop {
	for _, l := range rt.loops {
		if l.el.OnLoop() {
			return l
		}
	}
	return nil
}
