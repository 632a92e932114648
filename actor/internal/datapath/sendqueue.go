package datapath

import (
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// sendQueue has the messages and the one-sided operations that wait for credits or for room in the
// device. Other code only reads its fields. The zero value is empty.
type sendQueue struct {
	messages ring.Ring[*Outgoing]
	ops      ring.Ring[*OneSided]
	seq      uint32 // of the entry that was queued last
	gathers  bool   // all that waits may be posted, and does so at the end of the turn
	refused  bool   // the owner waits for Writable
	retrying bool   // a timer pumps the queue
	due      bool   // in the device's list of queues to pump
	gathered bool   // in the loop's gathering
}

// isEmpty reports whether nothing waits.
func (q *sendQueue) isEmpty() bool { return q.messages.Len() == 0 && q.ops.Len() == 0 }

// hasWaiting reports whether messages wait for credits or for room in the device.
func (q *sendQueue) hasWaiting() bool { return q.messages.Len() > 0 && !q.gathers }

// pushMessage queues s behind all that waits.
func (q *sendQueue) pushMessage(s *Outgoing) {
	q.seq++
	s.seq = q.seq
	q.messages.Push(s)
}

// pushOp queues o behind all that waits.
func (q *sendQueue) pushOp(o *OneSided) {
	q.seq++
	o.seq = q.seq
	q.ops.Push(o)
}

// returnMessage puts s back in its place: the device did not take it.
func (q *sendQueue) returnMessage(s *Outgoing) { q.messages.PushFront(s) }

// returnOp puts o back in its place: the device did not take it.
func (q *sendQueue) returnOp(o *OneSided) { q.ops.PushFront(o) }

// nextMessage returns the oldest message. There must be one.
func (q *sendQueue) nextMessage() *Outgoing { return *q.messages.At(0) }

// nextOp returns the oldest operation. There must be one.
func (q *sendQueue) nextOp() *OneSided { return *q.ops.At(0) }

func (q *sendQueue) popMessage() *Outgoing { return q.messages.Pop() }

// popMessages removes the oldest n messages, at least one, as a chain.
func (q *sendQueue) popMessages(n int) (first *Outgoing) {
	first = q.popMessage()
	for s := first; n > 1; n-- {
		s.next = q.popMessage()
		s = s.next
	}
	return first
}

// returnMessages puts a chain back in its place: the device did not take it.
func (q *sendQueue) returnMessages(first *Outgoing) {
	var last *Outgoing
	for s := first; s != nil; {
		s, s.next, last = s.next, last, s
	}
	for s := last; s != nil; {
		next := s.next
		s.next = nil
		q.returnMessage(s)
		s = next
	}
}
func (q *sendQueue) popOp() *OneSided { return q.ops.Pop() }

// inlineFollows reports whether a second message waits that the device copies.
func (q *sendQueue) inlineFollows(maxInline int) bool {
	return q.messages.Len() > 1 && len((*q.messages.At(1)).buf) <= maxInline
}

// immediateNext reports whether the oldest operation is a Write with an immediate.
func (q *sendQueue) immediateNext() bool {
	return q.ops.Len() > 0 && q.nextOp().Op == verbs.WriteWithImm
}

// noteRefused notes that the owner waits for Writable.
func (q *sendQueue) noteRefused() { q.refused = true }

// takeWritable reports, once, whether an owner that was refused may be sent Writable: at most half
// of limit messages wait.
func (q *sendQueue) takeWritable(limit int) bool {
	if !q.refused || q.messages.Len() > limit/2 {
		return false
	}
	q.refused = false
	return true
}

// pumpLater calls pump after RetryAfter, unless it is due already.
func (q *sendQueue) pumpLater(el *eventloop.Loop, pump func()) {
	if q.retrying {
		return
	}
	q.retrying = true
	el.NewTimer(func() {
		q.retrying = false
		pump()
	}).Reset(RetryAfter)
}
