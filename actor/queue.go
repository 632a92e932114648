package actor

import (
	"sync"
	"sync/atomic"
)

// queue is a FIFO that any goroutine pushes to and one consumer at a time pops from. Neither ever waits for the other, so a
// producer that lost its processor in the middle of a push cannot stop a loop. An empty queue is two nil pointers: its nodes are
// in a pool that all queues share, and that the garbage collector shrinks after a burst.
type queue struct {
	tail atomic.Pointer[node] // the last one pushed; nil: empty
	head atomic.Pointer[node] // the consumer's, except when a push finds the queue empty
}

type node struct {
	next atomic.Pointer[node]
	msg  any
}

var nodes = sync.Pool{New: func() any { return new(node) }}

// push appends. It is complete, and visible to the consumer, when it returns; the caller wakes the consumer afterwards.
func (q *queue) push(msg any) {
	n := nodes.Get().(*node)
	n.msg = msg
	if prev := q.tail.Swap(n); prev != nil {
		prev.next.Store(n)
	} else {
		q.head.Store(n)
	}
}

// pop takes the oldest. Not ok: there is none, or the push that the order waits for is not complete yet; that one's producer
// still has to wake the consumer, who therefore does not spin.
func (q *queue) pop() (msg any, ok bool) {
	n := q.head.Load()
	if n == nil {
		return nil, false
	}
	if next := n.next.Load(); next != nil {
		q.head.Store(next)
		n.next.Store(nil)
	} else {
		// Let go of head before tail: whoever finds tail nil writes head.
		q.head.Store(nil)
		if !q.tail.CompareAndSwap(n, nil) {
			q.head.Store(n)
			return nil, false
		}
	}
	msg, n.msg = n.msg, nil
	nodes.Put(n)
	return msg, true
}

// empty reports whether no push has begun since the last pop took everything.
func (q *queue) empty() bool { return q.tail.Load() == nil }

// ready reports whether a pop would succeed. For anyone but the consumer that is a guess.
func (q *queue) ready() bool {
	n := q.head.Load()
	return n != nil && (n.next.Load() != nil || q.tail.Load() == n)
}
