package cmidtest

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// CreateQP makes the identifier's queue pair.
func (id *driverID) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	switch {
	case id.dev == nil || id.qp != nil:
		return nil, unix.EINVAL
	case id.ps.Datagram() && id.in.f.iwarp:
		return nil, verbs.ErrNotSupported
	}
	if err := id.in.f.allocError(resQP); err != nil {
		return nil, err
	}
	in := id.in
	q := &qp{in: in, id: id, view: in.viewOf(id.dev), attr: attr}
	if q.attr.MaxSGE == 0 {
		q.attr.MaxSGE = 1
	}
	if !q.checkAttr() {
		return nil, unix.EINVAL
	}
	q.settleFn = func() {
		q.settling = false
		q.completeSends()
	}
	q.retryFn = func() { q.failAt(0, verbs.StatusRetryExc) }
	in.f.mu.Lock()
	q.num = in.host.nextQPN
	in.host.nextQPN++
	if id.ps.Datagram() {
		in.host.datagrams[q.num] = q
	}
	in.f.mu.Unlock()
	q.addUsers(1)
	id.qp = q
	q.view.dev.countObjects(resQP, 1)
	return q, nil
}

// addUsers adds n to the number of users of the queue pair's queues and domain. n is 1 or -1.
func (q *qp) addUsers(n int) {
	q.sq.users += n
	q.rq.users += n
	q.pd.Use(n)
	if q.srq != nil {
		q.srq.users += n
	}
}

// checkAttr reports whether the attributes are valid, and sets the queues from them.
func (q *qp) checkAttr() bool {
	a := &q.attr
	var ok bool
	if q.sq, ok = a.SendCQ.(*cq); !ok || !q.sq.isUsable(q.view) {
		return false
	}
	if q.rq, ok = a.RecvCQ.(*cq); !ok || !q.rq.isUsable(q.view) {
		return false
	}
	if a.SRQ != nil {
		if q.srq, ok = a.SRQ.(*srq); !ok || !q.srq.isUsable(q.view) {
			return false
		}
	}
	var err error
	if q.pd, err = q.view.Domain(a.PD); err != nil || q.srq != nil && !q.pd.Serves(q.srq.pd) {
		return false
	}
	return a.MaxSendWR >= 0 && a.MaxRecvWR >= 0 && a.MaxSGE >= 0 && a.MaxSGE <= maxSGE
}

// Num is the queue pair's number.
func (q *qp) Num() uint32 { return q.num }

// Context returns the Context of its attributes.
func (q *qp) Context() any { return q.attr.Context }

// PostSend queues wr.
func (q *qp) PostSend(wr *verbs.SendWR) error {
	switch {
	case (wr.Op == verbs.SendWithImm || wr.Op == verbs.WriteWithImm || wr.Op.Atomic()) && q.in.f.iwarp:
		return verbs.ErrNotSupported
	case q.over:
		return verbs.ErrQPState
	case q.id.ps.Datagram():
		return q.postDatagram(wr)
	case wr.Op == verbs.SendWithInvalidate && q.in.f.reserved:
		return verbs.ErrNotSupported
	case q.id.state != states.Connected:
		return verbs.ErrQPState
	}
	n, ok := q.bytesOf(wr)
	switch {
	case !ok:
		return unix.EINVAL
	case q.sends.Len() >= q.attr.MaxSendWR:
		return unix.ENOMEM
	}
	e := sendEntry{wr: *wr, n: n}
	if e.awaitsData() && len(wr.SGL) > 0 {
		e.sink = wr.SGL[0]
	}
	q.sends.Push(e)
	q.issueSends()
	if q.next < q.sends.Len() { // it waits, and the caller may reuse the slices
		e := q.sends.At(q.sends.Len() - 1)
		e.wr.Inline, e.wr.SGL = bytes.Clone(e.wr.Inline), slices.Clone(e.wr.SGL)
	}
	return nil
}

// PostRecv queues a receive.
func (q *qp) PostRecv(wr verbs.RecvWR) error {
	switch {
	case q.over || q.srq != nil || !q.pd.Holds(wr.SGE, verbs.LocalWrite):
		return unix.EINVAL
	case q.recvs.Len() >= q.attr.MaxRecvWR:
		return unix.ENOMEM
	}
	q.recvs.Push(wr)
	q.retryLater()
	return nil
}

// SetAccess changes the rights of the peer. The kernel's iWARP devices do not have it.
func (q *qp) SetAccess(access verbs.Access) error {
	switch {
	case !q.view.Attr().QPAccess:
		return verbs.ErrNotSupported
	case q.gone:
		return unix.EINVAL
	}
	q.denied = remoteRights &^ access
	return nil
}

// remoteRights are those that a peer can have.
const remoteRights = verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic

// Pause makes messages wait, or ends that (verbs.Pauser).
func (q *qp) Pause(on bool) {
	q.paused = on
	if on {
		q.leaveSRQ()
	} else {
		q.retryLater()
	}
}

// Waiting reports whether a message waits (verbs.Pauser). The device does not know of one that it
// has overlooked.
func (q *qp) Waiting() bool { return q.waiting.Len() > 0 && !q.missed }

// Contained has no effect: the device does not bound what comes in a turn (verbs.Pauser).
func (*qp) Contained(int) {}

// Destroy ends the queue pair. The identifier stays.
func (q *qp) Destroy() error {
	if !q.gone {
		q.release()
		q.id.stream.endLost()
	}
	return nil
}

// release does the work of Destroy. It is called when the identifier is destroyed, too.
func (q *qp) release() {
	q.fail()
	q.gone = true
	q.addUsers(-1)
	q.id.qp = nil
	if q.id.ps.Datagram() {
		q.unregisterDatagram()
	}
	q.view.dev.countObjects(resQP, -1)
}

// PostRecv adds a receive.
func (s *srq) PostRecv(wr verbs.RecvWR) error {
	if s.closed || !s.pd.Holds(wr.SGE, verbs.LocalWrite) || wr.SGE.MR != nil && wr.SGE.MR.PD != s.pd {
		return unix.EINVAL
	}
	if s.posted.Len() >= s.attr.MaxWR {
		return unix.ENOMEM
	}
	s.posted.Push(wr)
	s.scheduleServe()
	return nil
}
