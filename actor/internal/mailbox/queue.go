package mailbox

import (
	"sync"
	"sync/atomic"
)

// queue is a FIFO that any goroutine pushes to and one consumer at a time pops from. Neither ever
// waits for the other: a push is one compare-and-swap, so a producer that lost its processor in
// the middle of it has pushed, or has not. The consumer takes all pushed messages together and
// reverses them; no other goroutine touches them afterwards. An empty queue is two nil pointers:
// its nodes are in a pool that all queues share, and that the garbage collector shrinks after a
// burst.
type queue struct {
	in  atomic.Pointer[node] // pushed and not taken, newest first
	out *node                // taken, oldest first: the consumer's
}

type node struct {
	next *node
	msg  any
}

// nodes is chains of free nodes.
var nodes sync.Pool

// push appends. It is visible to the consumer when it returns; the caller wakes the consumer
// afterwards.
func (q *queue) push(msg any) {
	n, ok := nodes.Get().(*node)
	if !ok {
		n = new(node)
	}
	if n.next != nil {
		nodes.Put(n.next)
	}
	n.msg = msg
	for {
		n.next = q.in.Load()
		if q.in.CompareAndSwap(n.next, n) {
			return
		}
	}
}

// pop takes the oldest; its node goes to free.
func (q *queue) pop(free *nodeChain) (msg any, ok bool) {
	if q.out == nil && !q.takePushed() {
		return nil, false
	}
	n := q.out
	q.out = n.next
	msg, n.msg = n.msg, nil
	free.add(n)
	return msg, true
}

// takePushed moves the messages pushed since its last call to where pop finds them. False: nothing
// was.
func (q *queue) takePushed() bool {
	if q.in.Load() == nil {
		return false
	}
	for n := q.in.Swap(nil); n != nil; {
		n, n.next, q.out = n.next, q.out, n
	}
	return true
}

// empty reports whether nothing is queued. The consumer's.
func (q *queue) empty() bool { return q.out == nil && q.in.Load() == nil }

// hasPushed reports whether something is queued that the consumer has not taken. For anyone else
// that is a guess.
func (q *queue) hasPushed() bool { return q.in.Load() != nil }

// nodeChain is nodes on their way back to the pool. They go together, which costs its locked
// instructions once.
type nodeChain struct {
	first *node
	n     int
}

const nodeChainMax = 64

func (c *nodeChain) add(n *node) {
	n.next, c.first = c.first, n
	if c.n++; c.n == nodeChainMax {
		c.returnToPool()
	}
}

// returnToPool returns the chain to the pool.
func (c *nodeChain) returnToPool() {
	if c.first != nil {
		nodes.Put(c.first)
		c.first, c.n = nil, 0
	}
}
