package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// Poll takes completions, oldest first for each of the kernel's queues. So the completions of one
// queue pair are in order. Those of several queue pairs may not be.
func (q *completionQueue) Poll(wc []verbs.WC) int {
	n := 0
	for n < len(wc) && (q.ready.Len() > 0 || !q.nothingBehind() && q.takeOne()) {
		for ; n < len(wc) && q.ready.Len() > 0; n++ {
			wc[n] = q.ready.Pop()
		}
	}
	if n < len(wc) {
		q.notified = false
		q.scheduleSettle()
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

// takeOne takes one completion from the kernel's queues. The completions that result for the owner,
// if any, are in ready.
func (q *completionQueue) takeOne() bool {
	for range q.parts {
		if q.next >= len(q.parts) {
			q.next = 0
		}
		if q.parts[q.next].ring.Take(&q.taken) {
			q.dev.handleCQE(&q.taken)
			return true
		}
		q.next++
	}
	return false
}

// drainAll takes all completions from the kernel's queues.
func (q *completionQueue) drainAll() {
	for q.takeOne() {
	}
}

// handleCQE handles a completion of the kernel's. It is dropped if its queue pair no longer exists
// or if it makes no sense.
func (d *device) handleCQE(c *cqe) {
	q := d.qps[c.QPN]
	if q == nil {
		return
	}
	if c.Status != verbs.StatusSuccess {
		q.failCompletion(c, c.Status)
	}
	if c.Cookie&recvCookie == 0 {
		if q.sends.markDone(c.Cookie, c.Status) && q.dev.siw {
			q.readDone()
		}
		q.reportSends()
		return
	}
	var w recv
	ok := false
	if q.srq != nil {
		w, ok = q.srq.takeReceive(c.Cookie &^ recvCookie)
	} else if c.Cookie == recvCookie|q.recvs.head && q.recvs.head < q.recvs.tail {
		w, ok = q.recvs.pop(), true
	}
	if !ok {
		return
	}
	if c.Bytes > w.room && !c.Write { // the driver's mistake: the memory has less
		q.failCompletion(c, verbs.StatusLocLen)
	}
	wc := verbs.WC{ID: w.id, Status: c.Status, Op: verbs.Recv, Bytes: c.Bytes, QP: q, Imm: c.Imm, HasImm: c.HasImm, InvalidatedRKey: c.InvalidatedRKey}
	if c.Write {
		wc.Op = verbs.RecvWrite
	}
	if q.typ == verbs.UD {
		wc.SrcQPN, wc.GRH = c.SrcQPN, c.GRH
	}
	q.deliverReceive(wc)
}

// failCompletion makes a completion one of a work request that has failed, which ends the queue
// pair.
func (q *queuePair) failCompletion(c *cqe, status verbs.Status) {
	q.markEnded()
	*c = cqe{Cookie: c.Cookie, QPN: c.QPN, Status: status, Last: c.Last}
}

// reportSends delivers the completions of the sends that are next in order.
func (q *queuePair) reportSends() {
	var s send
	for q.sends.next(&s) {
		wc := verbs.WC{ID: s.id, Status: s.status, Op: s.op, QP: q}
		if s.status == verbs.StatusSuccess {
			wc.Bytes = s.bytes
		}
		q.sendCQ.push(wc)
	}
}

// deliverReceive delivers a receive, but keeps it while the queue pair is being modified. The
// kernel may already have brought the queue pair to RTS, so that the peer can send, before the loop
// knows. An owner that answers the message immediately must find a queue pair that can send.
// Receives of other queue pairs are not delayed.
func (q *queuePair) deliverReceive(wc verbs.WC) {
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
	q.recvCQ.wakeOwner()
}

// markEnded marks the queue pair as ended: nothing can be posted to it.
func (q *queuePair) markEnded() {
	if q.typ == verbs.RC {
		q.state = verbs.QPError
	}
}
