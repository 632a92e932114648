package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// received tells a receive. While the queue pair is being modified it is kept: the kernel may have
// brought it to RTS, so that the peer sends, before the loop has taken that in, and whoever answers
// the message at once must find a queue pair that can send. Those of other queue pairs are told.
func (q *queuePair) received(wc verbs.WC) {
	if q.changes > 0 {
		q.early.push(wc)
		return
	}
	q.recvCQ.push(wc)
}

// tellEarly tells what was kept, in the order in which it came. The kernel's word of it has been
// heard already.
func (q *queuePair) tellEarly() {
	if q.early.n == 0 {
		return
	}
	for q.early.n > 0 {
		q.recvCQ.push(q.early.pop())
	}
	q.recvCQ.wake()
}
