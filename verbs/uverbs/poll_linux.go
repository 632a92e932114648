package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// Poll takes completions, oldest first as far as they are in one of the kernel's queues: those of
// one queue pair are in order, those of several may not be.
func (q *completionQueue) Poll(wc []verbs.WC) int {
	n := 0
	for n < len(wc) && (q.ready.Len() > 0 || q.take()) {
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

// take looks for a completion in the kernel's queues. What it leads to, if anything, is in ready.
func (q *completionQueue) take() bool {
	for range q.parts {
		if q.next >= len(q.parts) {
			q.next = 0
		}
		if q.parts[q.next].ring.take(&q.taken) {
			q.dev.complete(&q.taken)
			return true
		}
		q.next++
	}
	return false
}

// drain takes everything that is in the kernel's queues.
func (q *completionQueue) drain() {
	for q.take() {
	}
}

// complete is a completion of the kernel's. One of a queue pair that is no more, or that makes no
// sense, reaches nobody.
func (d *device) complete(c *cqe) {
	q := d.qps[c.qpn]
	if q == nil {
		return
	}
	if c.status != verbs.StatusSuccess {
		q.end()
		c.bytes, c.hasImm, c.imm, c.srcQPN, c.grh = 0, false, 0, 0, false
	}
	if c.cookie&recvCookie == 0 {
		if q.sends.done(c.cookie, c.status) && q.dev.siw {
			q.landed()
		}
		q.report()
		return
	}
	id, ok := uint64(0), false
	if q.srq != nil {
		id, ok = q.srq.take(c.cookie &^ recvCookie)
	} else if c.cookie == recvCookie|q.recvs.head && q.recvs.head < q.recvs.tail {
		id, ok = q.recvs.pop(), true
	}
	if !ok {
		return
	}
	wc := verbs.WC{ID: id, Status: c.status, Op: verbs.Recv, Bytes: c.bytes, QP: q, Imm: c.imm, HasImm: c.hasImm}
	if q.typ == verbs.UD {
		wc.SrcQPN, wc.GRH = c.srcQPN, c.grh
	}
	q.received(wc)
}

// report completes the sends whose turn has come.
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

// received delivers a receive. While the queue pair is being modified the receive is kept: the
// kernel may have brought the queue pair to RTS, and the peer may send, before the loop knows of
// it. An owner that answers the message at once must find a queue pair that can send. Receives of
// other queue pairs are delivered.
func (q *queuePair) received(wc verbs.WC) {
	if q.changes > 0 {
		q.early.Push(wc)
		return
	}
	q.recvCQ.push(wc)
}

// deliverEarly delivers what was kept, in the order in which it came. The kernel's
// report of it has been read already.
func (q *queuePair) deliverEarly() {
	if q.early.Len() == 0 {
		return
	}
	for q.early.Len() > 0 {
		q.recvCQ.push(q.early.Pop())
	}
	q.recvCQ.wake()
}

// end says that the queue pair is over: nothing is posted to it any more.
func (q *queuePair) end() {
	if q.typ == verbs.RC {
		q.state = verbs.QPError
	}
}
