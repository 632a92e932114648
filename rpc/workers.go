package rpc

import (
	"sync"

	"github.com/rdmactor/rdmactor/internal/sched"
)

// workers are the goroutines that handlers run on. They are reused; there are never more than max,
// and few stay when there is no work. Work is taken in order. A worker that takes a call while
// others wait wakes another worker. Only one is being woken at a time. So few goroutines serve
// handlers that do not block, and no call waits for one that does.
type workers struct {
	max   int
	sched *sched.Scheduler

	mu         sync.Mutex
	head, tail *serverCall
	idle       []chan struct{} // idle workers
	n          int             // number of goroutines
	waking     bool            // a worker was woken or started, and has not checked the queue yet
	closed     bool
}

// keepIdle is how many workers stay when there is nothing to do.
const keepIdle = 16

// addCalls queues a list of calls, linked by next. It never blocks, and reports whether a goroutine
// was woken.
func (w *workers) addCalls(head, tail *serverCall) (woke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tail == nil {
		w.head = head
	} else {
		w.tail.next = head
	}
	w.tail = tail
	return w.wakeLocked()
}

// wakeLocked wakes or starts one more worker, unless one is on its way or there are max. It
// reports whether one is on its way.
func (w *workers) wakeLocked() bool {
	switch n := len(w.idle); {
	case w.waking:
		return true
	case n > 0:
		w.waking = true
		w.idle[n-1] <- struct{}{}
		w.idle = w.idle[:n-1]
	case w.n < w.max:
		w.waking = true
		w.n++
		w.sched.Go(w.runWorker)
	default:
		return false
	}
	return true
}

// skip notes that a call ends without a worker.
func (w *workers) skip(c *serverCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.h.counts.taken++
}

// runWorker runs calls on a worker. If a handler ends its goroutine, another takes its place.
func (w *workers) runWorker() {
	left := true
	defer func() {
		if left {
			w.sched.Go(w.runWorker)
		}
	}()
	signal := make(chan struct{}, 1)
	w.mu.Lock()
	for {
		w.waking = false
		for w.head != nil {
			c := w.head
			if w.head = c.next; w.head == nil {
				w.tail = nil
			} else {
				w.wakeLocked()
			}
			c.next = nil
			c.h.counts.taken++
			w.mu.Unlock()
			c.runCall()
			w.mu.Lock()
		}
		if w.closed || len(w.idle) >= keepIdle {
			w.n--
			w.mu.Unlock()
			left = false
			return
		}
		w.idle = append(w.idle, signal)
		w.mu.Unlock()
		<-signal
		w.sched.Resume()
		w.mu.Lock()
	}
}

// close ends the workers after the last work.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, signal := range w.idle {
		signal <- struct{}{}
	}
	w.idle = nil
}
