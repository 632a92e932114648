package cmidtest

import (
	"slices"

	"github.com/rdmactor/rdmactor/cmid/cmidtest/internal/memory"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// qp is a queue pair. Its owner's calls are in verbs.go, its requests in send.go, and its service
// for its peer in serve.go.
type qp struct {
	in     *instance
	id     *driverID
	view   *view
	pd     *memory.Domain
	num    uint32
	attr   verbs.QPInitAttr
	sq, rq *cq
	srq    *srq
	recvs  ring.Ring[verbs.RecvWR]
	denied verbs.Access // forbidden to the peer: SetAccess
	over   bool         // flushed: nothing further completes

	doomed     bool         // Fabric.FailNext is due
	doom       verbs.Opcode // the kind of work request that fails next
	doomStatus verbs.Status // its status

	gone bool

	sends    ring.Ring[sendEntry]
	next     int    // how many of them, from the oldest on, have left
	seq      uint64 // of the work request that left last
	reads    int    // Reads and atomic operations that have left and are not answered
	settling bool   // settle is queued
	settleFn func()
	retry    clock
	retryFn  func()

	came     uint64            // seq of the peer's last work request
	waiting  ring.Ring[packet] // a Send that found no receive, and later messages
	missed   bool              // waiting messages are overlooked until more come (Overlook)
	retrying bool              // retryNow is queued
	inSRQ    bool              // it is in srq.waiting
	paused   bool              // messages wait although there may be receives
	rnr      clock
}

// sendEntry is a work request of the send queue that has not completed. Its bytes are copied when
// it leaves, not when it is posted, because a fenced Send may send the result of an earlier Read.
type sendEntry struct {
	wr     verbs.SendWR
	n      uint32    // its length
	sink   verbs.SGE // of a Read, or of an atomic operation
	seq    uint64    // once it has left
	done   bool      // it completes when all before it have
	status verbs.Status
}

// fail moves the queue pair to its error state, and completes the outstanding work requests. On a
// nil queue pair it does nothing.
func (q *qp) fail() {
	if q == nil || q.over {
		return
	}
	q.over = true
	q.retry.stop()
	q.rnr.stop()
	q.flushSends()
	if !q.in.f.iwarp { // TCP always repeats a stream's bytes
		q.in.f.dropUnsent(q.id.self)
	}
	for q.recvs.Len() > 0 {
		q.rq.add(verbs.WC{ID: q.recvs.Pop().ID, Status: verbs.StatusFlushed, Op: verbs.Recv, QP: q}, false)
	}
	q.dropWaiting()
}

// dropWaiting drops the messages that found no receive.
func (q *qp) dropWaiting() {
	q.leaveSRQ()
	for q.waiting.Len() > 0 {
		p := q.waiting.Pop()
		p.release()
	}
}

// flushSends completes all of the send queue. No work request succeeds behind one that has failed
// or is not done.
func (q *qp) flushSends() {
	for bad := false; q.sends.Len() > 0; q.finishSend() {
		e := q.sends.At(0)
		if !e.done || bad && e.status == verbs.StatusSuccess {
			e.status = verbs.StatusFlushed
		}
		bad = bad || e.status != verbs.StatusSuccess
	}
}

// finishSend completes the oldest work request. A failure completes even if the work request is not
// signaled.
func (q *qp) finishSend() {
	e := q.sends.Pop()
	if q.next > 0 {
		q.next--
	}
	wc := verbs.WC{ID: e.wr.ID, Status: e.status, Op: e.wr.Op, QP: q}
	if e.status == verbs.StatusSuccess {
		wc.Bytes = e.n
		if e.wr.Flags&verbs.Signaled == 0 {
			return
		}
	}
	q.addCompletion(q.sq, wc, false)
}

// addCompletion adds a completion to one of the queues. If that has no room, the queue pair fails.
func (q *qp) addCompletion(to *cq, wc verbs.WC, solicited bool) {
	if !to.add(wc, solicited) && !q.over {
		q.in.runLater(q.fail)
	}
}

// leaveSRQ ends the wait for a shared receive. It is the next one's turn then.
func (q *qp) leaveSRQ() {
	if !q.inSRQ {
		return
	}
	q.inSRQ = false
	s := q.srq
	s.waiting = slices.DeleteFunc(s.waiting, func(other *qp) bool { return other == q })
	if s.asked == q {
		s.asked = nil
	}
	s.scheduleServe()
}

// bytesOf returns the length of a work request. ok is false for one that is malformed.
func (q *qp) bytesOf(wr *verbs.SendWR) (n uint32, ok bool) {
	access := verbs.Access(0)
	switch wr.Op {
	case verbs.Send, verbs.SendWithInvalidate, verbs.SendWithImm, verbs.Write, verbs.WriteWithImm:
	case verbs.Read, verbs.AtomicCmpSwap, verbs.AtomicFetchAdd:
		access = verbs.LocalWrite
		if q.id.ord == 0 || len(wr.SGL) > 1 || len(wr.Inline) > 0 {
			return 0, false
		}
		if wr.Op.Atomic() && (len(wr.SGL) == 0 || wr.SGL[0].Length != verbs.AtomicLen) {
			return 0, false
		}
	default: // verbs.Recv and verbs.RecvWrite are only in completions
		return 0, false
	}
	if len(wr.Inline) > maxInline || len(wr.SGL) > q.attr.MaxSGE || len(wr.Inline) > 0 && len(wr.SGL) > 0 {
		return 0, false
	}
	sum := uint64(len(wr.Inline))
	for _, s := range wr.SGL {
		if !q.pd.Holds(s, access) {
			return 0, false
		}
		sum += uint64(s.Length)
	}
	return uint32(sum), sum <= maxMessage
}
