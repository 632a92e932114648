package cmidtest

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// qp is a queue pair: what its owner does with it. What its peer does to it is in serve.go.
type qp struct {
	in     *instance
	id     *ident
	dev    *device
	view   *view
	pd     *pd
	num    uint32
	attr   verbs.QPInitAttr
	sq, rq *cq
	srq    *srq
	recvs  ring.Ring[verbs.RecvWR]
	over   bool // flushed: nothing completes any more

	doomed     bool // Fabric.FailNext: the next doom ...
	doom       verbs.Opcode
	doomStatus verbs.Status // ... fails so

	gone bool

	sends    ring.Ring[sendEntry]
	next     int    // how many of them, from the oldest on, have left
	seq      uint64 // of the one that left last
	reads    int    // that have left and are not answered, atomic operations too
	settling bool   // settle is queued
	settleFn func()
	retry    *eventloop.Timer

	came     uint64            // seq of the peer's work request that came last
	waiting  ring.Ring[packet] // a Send that found no receive, and what came behind it
	retrying bool              // retryNow is queued
	inSRQ    bool              // noted as waiting in srq
	paused   bool              // messages wait although there may be receives
	served   bool              // it is its turn to look for a receive
	rnr      *eventloop.Timer
}

func (in *instance) newQP(id *ident, attr verbs.QPInitAttr) (verbs.QP, error) {
	q := &qp{in: in, id: id, dev: id.dev, view: in.view(id.dev), attr: attr}
	if q.attr.MaxSGE == 0 {
		q.attr.MaxSGE = 1
	}
	if !q.check() {
		return nil, unix.EINVAL
	}
	q.settleFn = func() {
		q.settling = false
		q.settle()
	}
	in.f.mu.Lock()
	q.num = in.host.nextQPN
	in.host.nextQPN++
	in.f.mu.Unlock()
	q.sq.users++
	q.rq.users++
	q.pd.users++
	if q.srq != nil {
		q.srq.users++
	}
	id.qp = q
	if id.ps.Datagram() {
		q.register()
	}
	q.dev.count(resQP, 1)
	return q, nil
}

// check says whether the attributes are possible, and takes the queues from them.
func (q *qp) check() bool {
	a := &q.attr
	var ok bool
	if q.sq, ok = a.SendCQ.(*cq); !ok || q.sq.in != q.in || q.sq.dev != q.dev || q.sq.closed {
		return false
	}
	if q.rq, ok = a.RecvCQ.(*cq); !ok || q.rq.in != q.in || q.rq.dev != q.dev || q.rq.closed {
		return false
	}
	if a.SRQ != nil {
		if q.srq, ok = a.SRQ.(*srq); !ok || q.srq.in != q.in || q.srq.dev != q.dev || q.srq.closed {
			return false
		}
	}
	var err error
	if q.pd, err = q.view.domain(a.PD); err != nil || q.srq != nil && !q.serves(q.srq.pd) {
		return false
	}
	return a.MaxSendWR >= 0 && a.MaxRecvWR >= 0 && a.MaxSGE >= 0 && a.MaxSGE <= maxSGE
}

// serves reports whether a shared receive queue of p may be this queue pair's.
func (q *qp) serves(p *pd) bool { return p == q.pd || q.view.shares() && p == &q.view.pd }

// Num is the queue pair's number.
func (q *qp) Num() uint32 { return q.num }

// Context is what it was made with.
func (q *qp) Context() any { return q.attr.Context }

// PostSend queues wr.
func (q *qp) PostSend(wr *verbs.SendWR) error {
	switch {
	case (wr.Op == verbs.SendWithImm || wr.Op.Atomic()) && q.in.f.iwarp:
		return verbs.ErrNotSupported
	case q.over:
		return unix.EINVAL
	case q.id.ps.Datagram():
		return q.postDatagram(wr)
	case wr.Op == verbs.SendWithInvalidate && q.in.f.reserved:
		return verbs.ErrNotSupported
	case q.id.state != states.Connected:
		return unix.EINVAL
	}
	n, ok := q.bytesOf(wr)
	switch {
	case !ok:
		return unix.EINVAL
	case q.sends.Len() >= q.attr.MaxSendWR:
		return unix.ENOMEM
	}
	e := sendEntry{
		id: wr.ID, op: wr.Op, flags: wr.Flags, mem: remote{addr: wr.RemoteAddr, key: wr.RKey, n: n}, inline: wr.Inline, sgl: wr.SGL,
		imm: wr.Imm, atomic: atomicOp{compareAdd: wr.CompareAdd, swap: wr.Swap},
	}
	if e.fetches() && len(wr.SGL) > 0 {
		e.sink = wr.SGL[0]
	}
	q.sends.Push(e)
	q.issue()
	if q.next < q.sends.Len() { // it waits, and what it was described with is the caller's
		e := q.sends.At(q.sends.Len() - 1)
		e.inline, e.sgl = bytes.Clone(e.inline), slices.Clone(e.sgl)
	}
	return nil
}

// bytesOf is the length of a work request; false for one that cannot be.
func (q *qp) bytesOf(wr *verbs.SendWR) (n uint32, ok bool) {
	access := verbs.Access(0)
	switch wr.Op {
	case verbs.Send, verbs.SendWithInvalidate, verbs.SendWithImm, verbs.Write:
	case verbs.Read:
		access = verbs.LocalWrite
		if q.id.ord == 0 || len(wr.SGL) > 1 || len(wr.Inline) > 0 {
			return 0, false
		}
	case verbs.AtomicCmpSwap, verbs.AtomicFetchAdd:
		access = verbs.LocalWrite
		if q.id.ord == 0 || len(wr.SGL) != 1 || wr.SGL[0].Length != verbs.AtomicLen || len(wr.Inline) > 0 {
			return 0, false
		}
	case verbs.Recv: // only in completions
		return 0, false
	default:
		return 0, false
	}
	if len(wr.Inline) > maxInline || len(wr.SGL) > q.attr.MaxSGE || len(wr.Inline) > 0 && len(wr.SGL) > 0 {
		return 0, false
	}
	sum := uint64(len(wr.Inline))
	for _, s := range wr.SGL {
		if !q.pd.holds(s, access) {
			return 0, false
		}
		sum += uint64(s.Length)
	}
	return uint32(sum), sum <= maxMessage
}

// PostRecv queues a receive.
func (q *qp) PostRecv(wr verbs.RecvWR) error {
	switch {
	case q.over || q.srq != nil || !q.pd.holds(wr.SGE, verbs.LocalWrite):
		return unix.EINVAL
	case q.recvs.Len() >= q.attr.MaxRecvWR:
		return unix.ENOMEM
	}
	q.recvs.Push(wr)
	q.retryLater()
	return nil
}

// Destroy ends the queue pair; the identifier stays.
func (q *qp) Destroy() error {
	if !q.gone {
		q.release()
	}
	return nil
}

// release is Destroy, also as part of the identifier's.
func (q *qp) release() {
	q.fail()
	q.gone = true
	q.sq.users--
	q.rq.users--
	q.pd.users--
	if q.srq != nil {
		q.srq.users--
	}
	q.id.qp = nil
	if q.id.ps.Datagram() {
		q.unregister()
	}
	q.dev.count(resQP, -1)
}

// fail brings the queue pair into its error state: what is outstanding completes.
func (q *qp) fail() {
	if q.over {
		return
	}
	q.over = true
	q.leaveSRQ()
	q.stopClock()
	if q.rnr != nil {
		q.rnr.Stop()
	}
	q.flushSends()
	if !q.in.f.iwarp { // a stream's bytes are TCP's
		q.in.f.unsend(q.id.self())
	}
	for q.recvs.Len() > 0 {
		q.rq.add(verbs.WC{ID: q.recvs.Pop().ID, Status: verbs.StatusFlushed, Op: verbs.Recv, QP: q}, false)
	}
	for q.waiting.Len() > 0 {
		p := q.waiting.Pop()
		p.release()
	}
}

// flushSends completes the send queue. Nothing behind a work request that has failed, or is not
// done, succeeds.
func (q *qp) flushSends() {
	for bad := false; q.sends.Len() > 0; q.finishSend() {
		e := q.sends.At(0)
		if !e.done || bad && e.status == verbs.StatusSuccess {
			e.status = verbs.StatusFlushed
		}
		bad = bad || e.status != verbs.StatusSuccess
	}
}

// overrun ends a queue pair whose completion queue was too short.
func (q *qp) overrun() {
	if !q.over {
		q.in.later(q.fail)
	}
}
