package actor

import (
	"time"

	"github.com/rdmactor/rdmactor/internal/ring"
)

// dialSlice is the time for steps of Dials in a turn: the step that exceeds it is the turn's last.
// With the kernel's devices, creating a queue pair takes from 100 µs to tens of milliseconds.
const dialSlice = time.Millisecond

// dialQueue spreads the steps of a loop's Dials over its turns, because each turn reads some of
// the device's events. If hundreds of Dials continued immediately, the events of the others, and
// the peers' replies, would be read too late. An identifier is in the queue at most once.
type dialQueue struct {
	l       *loop
	waiting ring.Ring[*attempts]
	armed   bool          // Run follows
	turn    time.Time     // start of the turn in which spent was measured
	spent   time.Duration // time of that turn used for steps
}

// hasTime reports whether the present turn has time for another step.
func (q *dialQueue) hasTime() bool {
	if now := q.l.el.Now(); !q.turn.Equal(now) {
		q.turn, q.spent = now, 0
	}
	return q.spent < dialSlice
}

// tryNow begins a step immediately, unless steps are queued or the present turn has no time left.
func (q *dialQueue) tryNow(begin func()) (begun bool) {
	if q.waiting.Len() > 0 || !q.hasTime() {
		return false
	}
	q.measureStep(begin)
	return true
}

func (q *dialQueue) measureStep(begin func()) {
	before := q.l.clock()
	begin()
	q.spent += q.l.clock().Sub(before)
}

// queueStep queues the pending step of a for the end of this turn, or of a later one.
func (q *dialQueue) queueStep(a *attempts) {
	q.waiting.Push(a)
	q.deferRun()
}

func (q *dialQueue) deferRun() {
	if !q.armed && q.waiting.Len() > 0 {
		q.armed = true
		q.l.el.Defer(q)
	}
}

// Run begins as many queued steps as the turn has time for. A turn may call it several times.
func (q *dialQueue) Run(int) (more bool) {
	q.armed = false
	defer q.deferRun() // also if user code does not return
	for q.waiting.Len() > 0 && q.hasTime() {
		if a := q.waiting.Pop(); a.waitsForTurn() {
			q.measureStep(func() { a.table.box.Deliver(&dialTurn{a}) })
		}
	}
	return false
}
