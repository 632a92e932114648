package eventloop

import (
	"sync"
	"sync/atomic"
)

// Runnable is work that is queued on a loop without allocating: a mailbox, a device that flushes
// its writes.
type Runnable interface {
	// Run is called on the loop. It should stop after budget units of its work (messages) and
	// report whether more is left; if so, it is queued again. A Run that panics counts as one with
	// nothing left.
	Run(budget int) (more bool)
}

// RunBudget is the budget a Runnable is run with.
const RunBudget = 64

// queue is the loop's one FIFO of work. Any goroutine appends to in. The loop works through batch
// and then swaps the two. All elements are written under mu, by the loop too, so that the element
// that callbacks.holder points to may be read under mu.
type queue struct {
	mu      sync.Mutex
	in      []Runnable
	filled  atomic.Bool // in is not empty: polled by the loop
	posts   uint64      // functions accepted by Post
	pushes  uint64      // number of elements queued
	closing bool        // Post refuses
	ended   bool        // Schedule refuses too

	batch []Runnable // belongs to the loop
	pos   int        // index of the next element of batch; belongs to the loop
}

// keepCap is a buffer capacity that is kept however little of it is used.
const keepCap = 1024

// next returns the element to run now, nil when there is none. It stays valid until the following
// call.
func (q *queue) next() *Runnable {
	if q.pos == len(q.batch) && !q.takeBatch() {
		return nil
	}
	q.pos++
	return &q.batch[q.pos-1]
}

// takeBatch makes the work queued since the last take the batch.
func (q *queue) takeBatch() bool {
	if len(q.batch) == 0 && !q.filled.Load() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batch) > 0 {
		clear(q.batch) // drop references to finished work
	}
	done := q.batch[:0]
	if cap(done) > keepCap && len(q.batch) < cap(done)/8 {
		done = nil // a burst is over: release its memory
	}
	q.batch, q.in, q.pos = q.in, done, 0
	q.filled.Store(false)
	return len(q.batch) > 0
}

// pushAgain queues a Runnable that had more to do.
func (q *queue) pushAgain(r Runnable) {
	q.mu.Lock()
	q.pushLocked(r)
	q.mu.Unlock()
}

// pushLocked queues r. The caller holds mu.
func (q *queue) pushLocked(r Runnable) {
	q.in = append(q.in, r)
	q.pushes++
	q.filled.Store(true)
}

// sealIfEmpty makes Schedule refuse from now on, unless there is something to run.
func (q *queue) sealIfEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pos < len(q.batch) || len(q.in) > 0 {
		return false
	}
	q.ended = true
	return true
}

// closeIntake makes Post and Schedule refuse from now on, and returns the number of remaining
// elements.
func (q *queue) closeIntake() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closing, q.ended = true, true
	return len(q.in) + len(q.batch) - q.pos
}

// hasWork reports whether there is anything to run. Loop goroutine.
func (q *queue) hasWork() bool {
	return q.pos < len(q.batch) || q.filled.Load()
}
