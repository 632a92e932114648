package eventloop

import "sync"

// deferral is the work that a turn runs at its end.
type deferral struct {
	next     []Runnable // deferred, not yet run
	flushing []Runnable // being run; written under the queue's mu, like the queue's elements
	flushed  int        // elements of flushing that were run
}

// deferRounds bounds the rounds in which a turn runs deferred work that was deferred by deferred
// work.
const deferRounds = 8

// run runs the turn's deferred work. It is moved to flushing under the queue's lock, so that the
// watchdog may read it there while Defer appends elsewhere without one.
func (d *deferral) run(mu *sync.Mutex, calls *callbacks) (ran int) {
	for round := 0; round < deferRounds && len(d.next) > 0; round++ {
		mu.Lock()
		clear(d.flushing)
		d.flushing = append(d.flushing[:0], d.next...)
		mu.Unlock()
		clear(d.next)
		d.next = d.next[:0]
		for i := range d.flushing {
			d.flushed = i + 1
			if calls.run(&d.flushing[i]) {
				d.next = append(d.next, d.flushing[i])
			}
		}
		ran += len(d.flushing)
	}
	return ran
}

// keepRest keeps the work of a turn that was broken off for the next one.
func (d *deferral) keepRest() {
	d.next = append(d.next, d.flushing[d.flushed:]...)
	d.flushed = len(d.flushing)
}
