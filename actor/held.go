package actor

import "time"

// Held counts the messages that owners have received and not given back: retained and not released, or on their way to an actor
// on goroutines. Their connections may have ended. It is collected as Inspect is. Any goroutine.
func (rt *Runtime) Held() (n int) {
	for _, l := range rt.loops {
		if l.el.OnLoop() {
			return l.Held()
		}
	}
	counts, _ := askLoops(rt, (*loop).Held)
	for _, c := range counts {
		n += c
	}
	return n
}

// askLoops asks every loop in its turn, those that have ended excepted. One that is blocked for longer than abortFor cannot be asked:
// then blocked says so, and what the others have answered is returned. Any goroutine but a loop's.
func askLoops[T any](rt *Runtime, ask func(*loop) T) (answers []T, blocked bool) {
	told := make(chan T, len(rt.loops))
	left := 0
	for _, l := range rt.loops {
		if l.el.Post(func() { told <- ask(l); l.el.Handoff() }) == nil {
			left++
		}
	}
	patience := time.NewTimer(abortFor)
	defer patience.Stop()
	for ; left > 0; left-- {
		select {
		case a := <-told:
			answers = append(answers, a)
		case <-patience.C:
			return answers, true
		}
	}
	return answers, false
}
