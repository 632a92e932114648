package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// Poll takes completions, oldest first for each of the kernel's queues. So the completions of one
// queue pair are in order. Those of several queue pairs may not be.
func (q *completionQueue) Poll(wc []verbs.WC) int {
	n := 0
	for n < len(wc) && (q.ready.Len() > 0 || !q.nothingBehind() && q.take()) {
		for ; n < len(wc) && q.ready.Len() > 0; n++ {
			wc[n] = q.ready.Pop()
		}
	}
	if n < len(wc) {
		q.notified = false
		q.later()
	} else {
		q.next++
	}
	return n
}

// nothingBehind reports whether the completion taken last was the last one. An owner that polls
// after a notification is assumed to need no later completions. Outside of a notification that is
// not assumed: the end of a connection may have been read, and everything before it must be
// delivered first.
func (q *completionQueue) nothingBehind() bool {
	return q.notifying && q.taken.Last && len(q.parts) == 1
}

// take takes one completion from the kernel's queues. The completions that result for the owner, if
// any, are in ready.
func (q *completionQueue) take() bool {
	for range q.parts {
		if q.next >= len(q.parts) {
			q.next = 0
		}
		if q.parts[q.next].ring.Take(&q.taken) {
			q.dev.complete(&q.taken)
			return true
		}
		q.next++
	}
	return false
}

// drain takes all completions from the kernel's queues.
func (q *completionQueue) drain() {
	for q.take() {
	}
}

// complete handles a completion of the kernel's. It is dropped if its queue pair no longer exists
// or if it makes no sense.
func (d *device) complete(c *cqe) {
	q := d.qps[c.QPN]
	if q == nil {
		return
	}
	if c.Status != verbs.StatusSuccess {
		q.failed(c, c.Status)
	}
	if c.Cookie&recvCookie == 0 {
		if q.sends.done(c.Cookie, c.Status) && q.dev.siw {
			q.landed()
		}
		q.report()
		return
	}
	var w recv
	ok := false
	if q.srq != nil {
		w, ok = q.srq.take(c.Cookie &^ recvCookie)
	} else if c.Cookie == recvCookie|q.recvs.head && q.recvs.head < q.recvs.tail {
		w, ok = q.recvs.pop(), true
	}
	if !ok {
		return
	}
	if c.Bytes > w.room && !c.Write { // the driver's mistake: the memory has less
		q.failed(c, verbs.StatusLocLen)
	}
	wc := verbs.WC{ID: w.id, Status: c.Status, Op: verbs.Recv, Bytes: c.Bytes, QP: q, Imm: c.Imm, HasImm: c.HasImm, InvalidatedRKey: c.InvalidatedRKey}
	if c.Write {
		wc.Op = verbs.RecvWrite
	}
	if q.typ == verbs.UD {
		wc.SrcQPN, wc.GRH = c.SrcQPN, c.GRH
	}
	q.received(wc)
}

// failed makes a completion one of a work request that has failed, which ends the queue pair.
func (q *queuePair) failed(c *cqe, status verbs.Status) {
	q.end()
	*c = cqe{Cookie: c.Cookie, QPN: c.QPN, Status: status, Last: c.Last}
}

// report delivers the completions of the sends that are next in order.
func (q *queuePair) report() {
	var s send
	for q.sends.next(&s) {
		wc := verbs.WC{ID: s.id, Status: s.status, Op: s.op, QP: q}
		if s.status == verbs.StatusSuccess {
			wc.Bytes = s.bytes
		}
		q.sendCQ.push(wc)
	}
}

// received delivers a receive, but keeps it while the queue pair is being modified. The kernel may
// already have brought the queue pair to RTS, so that the peer can send, before the loop knows. An
// owner that answers the message immediately must find a queue pair that can send. Receives of
// other queue pairs are not delayed.
func (q *queuePair) received(wc verbs.WC) {
	if q.changes > 0 {
		q.early.Push(wc)
		return
	}
	q.recvCQ.push(wc)
}

// deliverEarly delivers the receives that were kept, in order. The kernel's notification of them
// has been read already.
func (q *queuePair) deliverEarly() {
	if q.early.Len() == 0 {
		return
	}
	for q.early.Len() > 0 {
		q.recvCQ.push(q.early.Pop())
	}
	q.recvCQ.wake()
}

// end marks the queue pair as ended: nothing can be posted to it.
func (q *queuePair) end() {
	if q.typ == verbs.RC {
		q.state = verbs.QPError
	}
}
