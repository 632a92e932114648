package traces

import (
	"context"
	"sync"
	"sync/atomic"
)

// queue runs calls of the SDK in order, on a goroutine that lasts as long as there are any. put
// never waits for them.
type queue struct {
	room     int
	panicked func() // called if a call has panicked
	dropped  atomic.Uint64

	mu      sync.Mutex
	waiting []func()
	working bool
	idle    chan struct{} // made by flush; closed when the queue is empty
}

// put queues f, or drops it if there is no room.
func (q *queue) put(f func()) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= q.room {
		q.dropped.Add(1)
		return false
	}
	q.putLocked(f)
	return true
}

// putAlways queues f even if there is no room. It is for the last of several calls, of which the
// first had room, so the queue stays bounded.
func (q *queue) putAlways(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.putLocked(f)
}

func (q *queue) putLocked(f func()) {
	q.waiting = append(q.waiting, f)
	if !q.working {
		q.working = true
		go q.runQueued()
	}
}

// runQueued runs the queued calls.
func (q *queue) runQueued() {
	for f := q.take(); f != nil; f = q.take() {
		q.runCall(f)
	}
}

// take removes the next call; nil: none, and the goroutine ends.
func (q *queue) take() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.waiting, q.working = nil, false
		if q.idle != nil {
			close(q.idle)
			q.idle = nil
		}
		return nil
	}
	f := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	return f
}

func (q *queue) runCall(f func()) {
	defer func() {
		if recover() != nil {
			q.panicked()
		}
	}()
	f()
}

// flush waits until the queue is empty.
func (q *queue) flush(ctx context.Context) error {
	q.mu.Lock()
	if !q.working {
		q.mu.Unlock()
		return nil
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
