package core

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// receives is DDP's untagged queue 0: the receives, and the Send that is filling one.
type receives struct {
	queue  *ring.Ring[verbs.RecvWR] // nil: no receive was posted
	srq    RecvSource               // nil: the receives are in queue
	limit  uint32
	paused bool // the next message waits as if there were no receive

	taken bool // current is in use: a Send is in progress
	op    wire.Opcode
	// of the Send that is next or in progress
	msn     uint32
	off     uint32 // its bytes so far: the next MO
	current verbs.RecvWR
}

// post queues wr.
func (q *receives) post(wr *verbs.RecvWR, a *access) error {
	if q.srq != nil {
		return badWR("receive posted to a queue pair with a shared receive queue")
	}
	if err := CheckRecv(wr, a.pd, a.regions.sharedPD()); err != nil {
		return err
	}
	if q.queue == nil {
		q.queue = new(ring.Ring[verbs.RecvWR])
	}
	slot := q.queue.Slot(int(q.limit))
	if slot == nil {
		return fmt.Errorf("iwarp: receive queue full, %d receives outstanding: %w", q.queue.Len(), unix.ENOMEM)
	}
	*slot = *wr
	return nil
}

// checkOrder checks queue, MSN and MO of a Send's segment (RFC 5041 section 7).
func (q *receives) checkOrder(h *wire.Header) *fault {
	switch {
	case h.QN != 0:
		return ddpFault(wire.DDPUntagged, 1, "%v on queue %d", h.Opcode, h.QN)
	case h.MSN != q.msn:
		return ddpFault(wire.DDPUntagged, 3, "%v with MSN %d, should be %d", h.Opcode, h.MSN, q.msn)
	case h.MO != q.off:
		return ddpFault(wire.DDPUntagged, 4, "%v with MO %d, should be %d", h.Opcode, h.MO, q.off)
	case q.taken && h.Opcode != q.op:
		return rdmapFault(wire.RDMAPOperation, 6, "%v in the middle of a %v", h.Opcode, q.op)
	}
	return nil
}

// mustWait reports whether the message that s begins has to wait for a receive.
func (q *receives) mustWait(s *segment) bool {
	if q.taken || !s.h.Opcode.Send() || !q.paused && (q.srq == nil || !q.srq.WaitsIfEmpty() || q.srq.HasRecv()) {
		return false
	}
	return q.checkOrder(&s.h) == nil
}

// take takes a receive for the message that begins with an op.
func (q *receives) take(op wire.Opcode) *fault {
	switch {
	case q.srq != nil && q.srq.HasRecv():
		q.current = q.srq.TakeRecv()
	case q.srq == nil && q.queue != nil && q.queue.Len() > 0:
		q.current = q.queue.Pop()
	default:
		return ddpFault(wire.DDPUntagged, 2, "%v with no receive posted", op)
	}
	q.taken, q.op = true, op
	return nil
}

// place returns the memory for a Send's segment, whose message takes a receive if it is its first.
func (q *receives) place(s *segment, a *access) (dst []byte, mr *verbs.MR, f *fault) {
	h := &s.h
	if f = q.checkOrder(h); f == nil && !q.taken {
		f = q.take(h.Opcode)
	}
	if f != nil {
		return nil, nil, f
	}
	mr = q.current.SGE.MR
	if !a.isUsable(mr) { // freed since it was posted
		return nil, nil, freedFault(h)
	}
	dst = q.rest()
	if uint64(s.size) > uint64(len(dst)) {
		f = ddpFault(wire.DDPUntagged, 5, "%v of at least %d bytes into a receive of %d",
			h.Opcode, uint64(q.off)+uint64(s.size), q.current.SGE.Length)
		f.hit.recv = verbs.StatusLocLen
		return nil, nil, f
	}
	return dst[:s.size:s.size], mr, nil
}

// rest returns the memory of the receive in use behind the segments that are complete.
func (q *receives) rest() []byte {
	if q.current.SGE.MR == nil {
		return nil
	}
	return sgeBytes(&q.current.SGE)[q.off:]
}

// deliver counts a complete segment, and completes the receive with the last.
func (q *receives) deliver(s *segment, a *access, up Upcalls) *fault {
	if q.off += s.size; !s.h.Last {
		return nil
	}
	wc := verbs.WC{ID: q.current.ID, Op: verbs.Recv, Bytes: q.off}
	if q.op == wire.OpSendInvalidate || q.op == wire.OpSendSEInvalidate {
		if f := a.invalidate(s.h.STag, q.op); f != nil {
			return f
		}
		wc.InvalidatedRKey = s.h.STag
	}
	q.msn++
	q.off, q.taken, q.current = 0, false, verbs.RecvWR{}
	up.Complete(wc, q.op == wire.OpSendSE || q.op == wire.OpSendSEInvalidate)
	return nil
}

// flush completes the receive in use with st, and the others as flushed.
func (q *receives) flush(up Upcalls, st verbs.Status) {
	if q.taken {
		id := q.current.ID
		q.taken, q.current = false, verbs.RecvWR{}
		up.Complete(verbs.WC{ID: id, Op: verbs.Recv, Status: st}, false)
	}
	for q.queue != nil && q.queue.Len() > 0 {
		wr := q.queue.Pop()
		up.Complete(verbs.WC{ID: wr.ID, Op: verbs.Recv, Status: verbs.StatusFlushed}, false)
	}
}
