package world

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// choice is one possible next step.
type choice struct {
	task  *task             // continues
	loop  *poller           // has a turn
	got   []eventloop.Ready // the events that it could report
	event int               // number of a network event, from 1
	plan  int               // index in planned, from 1
}

// RunUntil takes steps until done is true, for at most d of virtual time. It reports whether done
// was true. done is called between two steps.
func (w *World) RunUntil(d time.Duration, done func() bool) bool {
	end := time.Now().Add(d)
	for {
		synctest.Wait()
		w.guard.beats.Add(1)
		switch {
		case w.Failed():
			return false
		case done():
			return true
		case w.steps >= maxSteps:
			w.Fail("%d steps, and no rest", w.steps)
			return false
		}
		choices := w.possibleSteps()
		if len(choices) > 0 && !w.timeMayPass(end) {
			w.takeStep(choices[w.order.IntN(len(choices))])
			continue
		}
		if !time.Now().Before(end) {
			return false
		}
		w.advanceTime(end, len(choices) > 0)
	}
}

// RunFor takes steps for d of virtual time.
func (w *World) RunFor(d time.Duration) { w.RunUntil(d, func() bool { return false }) }

// slow is how often time passes although a step is possible: then the processors are busy with
// other work.
const slow = 64

// timeMayPass decides whether time passes before the next step.
func (w *World) timeMayPass(end time.Time) bool {
	return w.order.IntN(slow) == 0 && time.Now().Before(end)
}

// possibleSteps lists the possible steps, in an order that depends only on the past.
func (w *World) possibleSteps() (all []choice) {
	now := time.Now()
	w.mu.Lock()
	for _, t := range w.parked {
		if t.mayContinue() && !now.Before(t.due) {
			all = append(all, choice{task: t})
		}
	}
	w.mu.Unlock()
	for _, p := range w.procs {
		if !p.mayTurn() {
			continue
		}
		for _, q := range p.pollers {
			if got, turn := q.readyEvents(now); turn {
				all = append(all, choice{loop: q, got: got})
			}
		}
	}
	if w.net != nil {
		for i := range w.net.Due(now) {
			all = append(all, choice{event: i + 1})
		}
	}
	for i, p := range w.planned {
		if !now.Before(p.at) {
			all = append(all, choice{plan: i + 1})
		}
	}
	return all
}

// takeStep takes one step.
func (w *World) takeStep(c choice) {
	w.steps++
	switch {
	case c.task != nil:
		if c.task.machine {
			w.Trace("the machine of %s goes on without it", c.task.p.name)
		} else {
			w.Trace("%s goroutine %d goes on", c.task.p.name, c.task.n)
		}
		w.mu.Lock()
		i := slices.Index(w.parked, c.task)
		w.parked = slices.Delete(w.parked, i, i+1)
		w.mu.Unlock()
		c.task.due = time.Time{}
		c.task.turn <- true
	case c.loop != nil:
		got := w.drawEvents(c.got, c.loop.isExpired())
		w.Trace("%s has a turn:%s", c.loop.name, c.loop.describeEvents(got))
		c.loop.grantTurn(got)
	case c.event != 0:
		w.Trace("%s", w.net.Step(c.event-1))
	case c.plan != 0:
		p := w.planned[c.plan-1]
		w.planned = slices.Delete(w.planned, c.plan-1, c.plan)
		w.Trace("%s", p.name)
		p.fn()
	}
}

// drawEvents takes a part of the events that a loop could report, in any order. The rest is
// reported in a later turn, as epoll does when more is ready than fits. A loop whose time is over
// may get nothing: epoll has returned before anything was ready, and the process was late after
// that.
func (w *World) drawEvents(all []eventloop.Ready, late bool) []eventloop.Ready {
	if len(all) == 0 || late && w.order.IntN(2) == 0 {
		return nil
	}
	w.order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if w.order.IntN(4) == 0 {
		return all[:1+w.order.IntN(len(all))]
	}
	return all
}

// advanceTime lets time pass: until the next event is due, or for a moment if a step is possible.
// How long that is does not depend on the due times: a loop that is woken while it starts may have
// an expired time-out, or none, and Go decides which.
func (w *World) advanceTime(end time.Time, busy bool) {
	if busy {
		time.Sleep(time.Duration(1 + w.order.Int64N(int64(2*time.Millisecond))))
		return
	}
	until := end
	for _, at := range w.dueTimes() {
		if at.Before(until) {
			until = at
		}
	}
	select { // discard an old kick
	case <-w.moved:
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-w.moved:
	case <-timer.C:
	}
}

// dueTimes lists the times for which something waits.
func (w *World) dueTimes() (all []time.Time) {
	w.mu.Lock()
	for _, t := range w.parked {
		if t.mayContinue() && !t.due.IsZero() {
			all = append(all, t.due)
		}
	}
	w.mu.Unlock()
	for _, p := range w.procs {
		if !p.mayRun() {
			continue
		}
		for _, q := range p.pollers {
			if at := q.waitDeadline(); !at.IsZero() {
				all = append(all, at)
			}
		}
	}
	if w.net != nil {
		if at, ok := w.net.Next(); ok {
			all = append(all, at)
		}
	}
	for _, p := range w.planned {
		all = append(all, p.at)
	}
	return all
}
