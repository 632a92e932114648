package cmidtest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// InfiniBand's clocks for data: an unacknowledged message ends its queue pair after the first, and a message that finds no receive
// is tried again after the second, RNRRetryCount times.
const (
	retryTimeout = 17 * time.Second
	rnrTimer     = 655 * time.Millisecond
)

// ack is how a Send ended at the receiver.
type ack uint8

const (
	ackOK      ack = iota
	ackWait        // no receive yet: the sender goes on waiting
	ackNoRecv      // and gives up
	ackTooLong     // longer than the receive
)

var ackStatus = map[ack]verbs.Status{
	ackOK: verbs.StatusSuccess, ackWait: verbs.StatusSuccess, ackNoRecv: verbs.StatusRNRRetryExc, ackTooLong: verbs.StatusRemInvReq,
}

// sendEntry is a Send that was posted and not acknowledged yet.
type sendEntry struct {
	id       uint64
	signaled bool
}

// qp is a queue pair.
type qp struct {
	in     *instance
	id     *ident
	dev    *device
	num    uint32
	attr   verbs.QPInitAttr
	sq, rq *cq
	srq    *srq
	recvs  fifo[verbs.RecvWR]
	sends  fifo[sendEntry]
	posted uint64 // number of the Send posted last
	acked  uint64
	over   bool // flushed: nothing completes any more
	gone   bool

	waiting  fifo[packet] // InfiniBand: messages that found no receive
	retrying bool         // retry is queued
	inSRQ    bool         // noted as waiting in srq
	rnr      *eventloop.Timer
	retry    *eventloop.Timer
}

func (in *instance) newQP(id *ident, attr verbs.QPInitAttr) (verbs.QP, error) {
	sq, ok1 := attr.SendCQ.(*cq)
	rq, ok2 := attr.RecvCQ.(*cq)
	if !ok1 || !ok2 || attr.MaxSendWR < 0 || attr.MaxRecvWR < 0 || sq.in != in || rq.in != in {
		return nil, unix.EINVAL
	}
	q := &qp{in: in, id: id, attr: attr, sq: sq, rq: rq}
	if attr.SRQ != nil {
		var ok bool
		if q.srq, ok = attr.SRQ.(*srq); !ok || q.srq.in != in {
			return nil, unix.EINVAL
		}
		q.srq.users++
	}
	if q.attr.MaxSGE == 0 {
		q.attr.MaxSGE = 1
	}
	in.f.mu.Lock()
	q.num = in.host.nextQPN
	in.host.nextQPN++
	in.f.mu.Unlock()
	sq.users++
	rq.users++
	id.qp = q
	q.dev = id.dev
	q.dev.count(resQP, 1)
	return q, nil
}

// Num is the queue pair's number.
func (q *qp) Num() uint32 { return q.num }

// Context is what it was made with.
func (q *qp) Context() any { return q.attr.Context }

// PostSend queues a Send.
func (q *qp) PostSend(wr *verbs.SendWR) error {
	if wr.Op != verbs.Send {
		return verbs.ErrNotSupported
	}
	if q.over || q.id.state != states.Connected {
		return unix.EINVAL
	}
	n := len(wr.Inline)
	if n > maxInline || len(wr.SGL) > q.attr.MaxSGE {
		return unix.EINVAL
	}
	if n == 0 {
		for _, s := range wr.SGL {
			if !fits(s) {
				return unix.EINVAL
			}
			n += int(s.Length)
		}
	}
	if n > maxMessage {
		return unix.EINVAL
	}
	if q.sends.len() >= q.attr.MaxSendWR {
		return unix.ENOMEM
	}
	b := buffers.Get().(*buffer)
	b.b = append(b.b[:0], wr.Inline...)
	if len(wr.Inline) == 0 {
		for _, s := range wr.SGL {
			b.b = append(b.b, place(s)...)
		}
	}
	q.posted++
	q.sends.push(sendEntry{wr.ID, wr.Flags&verbs.Signaled != 0})
	if q.sends.len() == 1 {
		q.startClock()
	}
	p := q.id.packet(MsgSend, nil)
	p.data, p.seq = b, q.posted
	q.in.f.send(p)
	return nil
}

// startClock waits for the peer's acknowledgement. On iWARP TCP waits, longer than anybody.
func (q *qp) startClock() {
	if q.in.f.iwarp {
		return
	}
	if q.retry == nil {
		q.retry = q.in.loop.NewTimer(func() {
			q.finishSend(verbs.StatusRetryExc)
			q.fail()
		})
	}
	q.retry.Reset(retryTimeout)
}

func (q *qp) stopClock() {
	if q.retry != nil {
		q.retry.Stop()
	}
}

// PostRecv queues a receive.
func (q *qp) PostRecv(wr verbs.RecvWR) error {
	switch {
	case q.over || q.srq != nil || !fits(wr.SGE):
		return unix.EINVAL
	case q.recvs.len() >= q.attr.MaxRecvWR:
		return unix.ENOMEM
	}
	q.recvs.push(wr)
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
	if q.srq != nil {
		q.srq.users--
	}
	q.id.qp = nil
	q.dev.count(resQP, -1)
}

// fail brings the queue pair into its error state: what is outstanding completes as flushed.
func (q *qp) fail() {
	if q.over {
		return
	}
	q.over = true
	q.stopClock()
	if q.rnr != nil {
		q.rnr.Stop()
	}
	for q.sends.len() > 0 {
		q.finishSend(verbs.StatusFlushed)
	}
	for q.recvs.len() > 0 {
		q.rq.add(verbs.WC{ID: q.recvs.pop().ID, Status: verbs.StatusFlushed, Op: verbs.Recv, QP: q})
	}
	for q.waiting.len() > 0 {
		p := q.waiting.pop()
		p.release()
	}
}

// finishSend completes the oldest Send. Failures complete whether asked to or not.
func (q *qp) finishSend(st verbs.Status) {
	s := q.sends.pop()
	q.acked++
	if (s.signaled || st != verbs.StatusSuccess) && !q.sq.add(verbs.WC{ID: s.id, Status: st, Op: verbs.Send, QP: q}) {
		q.overrun()
	}
}

// overrun ends a queue pair whose completion queue was too short.
func (q *qp) overrun() {
	if !q.over {
		q.in.later(q.fail)
	}
}

// gotSend is a message from the peer.
func (in *instance) gotSend(id *ident, p *packet) {
	if id == nil || id.qp == nil || id.qp.over || id.far != p.from {
		return // nobody acknowledges it
	}
	switch id.state {
	case states.Accepting: // IBV_EVENT_COMM_EST: the RTU is late, or lost
		id.becomeEstablished()
		if id.qp == nil || id.qp.over {
			return
		}
	case states.Connected:
	default:
		return
	}
	q := id.qp
	if q.waiting.len() > 0 || !q.receive(p) {
		q.waiting.push(*p)
		p.data = nil
	}
}

// receive puts a message into a receive; false when there is none to wait for.
func (q *qp) receive(p *packet) (done bool) {
	wr, ok := q.takeRecv()
	switch {
	case q.over: // whoever was asked to post ended it instead
		return true
	case !ok && q.in.f.iwarp:
		q.terminate("a Send came that found no receive posted")
		return true
	case !ok:
		q.waitFor(p)
		return false
	case len(p.data.b) > int(wr.SGE.Length):
		q.rq.add(verbs.WC{ID: wr.ID, Status: verbs.StatusLocLen, Op: verbs.Recv, QP: q})
		if q.in.f.iwarp {
			q.terminate(fmt.Sprintf("a Send of %d bytes came into a receive of %d", len(p.data.b), wr.SGE.Length))
		} else {
			q.acknowledge(p, ackTooLong)
			q.fail()
		}
		return true
	}
	copy(place(wr.SGE), p.data.b)
	if !q.rq.add(verbs.WC{ID: wr.ID, Op: verbs.Recv, Bytes: uint32(len(p.data.b)), QP: q}) {
		q.overrun()
	}
	q.acknowledge(p, ackOK)
	return true
}

// takeRecv takes the oldest receive; a shared queue's owner may post one now.
func (q *qp) takeRecv() (wr verbs.RecvWR, ok bool) {
	posted := &q.recvs
	if q.srq != nil {
		posted = &q.srq.posted
		if posted.len() == 0 && q.srq.attr.OnEmpty != nil {
			q.srq.attr.OnEmpty()
		}
	}
	if q.over || posted.len() == 0 {
		return wr, false
	}
	return posted.pop(), true
}

func (q *qp) acknowledge(p *packet, st ack) {
	a := q.id.packet(MsgAck, nil)
	a.seq, a.status = p.seq, st
	q.in.f.send(a)
}

// waitFor is InfiniBand's RNR: the sender tries again, as often as this side has allowed.
func (q *qp) waitFor(p *packet) {
	if q.srq != nil && !q.inSRQ {
		q.inSRQ = true
		q.srq.waiting = append(q.srq.waiting, q)
	}
	if q.waiting.len() > 0 {
		return
	}
	q.acknowledge(p, ackWait)
	n := q.id.own.RNRRetryCount
	if n == retriesNoEnd {
		return
	}
	if q.rnr == nil {
		q.rnr = q.in.loop.NewTimer(q.giveUp)
	}
	q.rnr.Reset(time.Duration(n) * rnrTimer)
}

// giveUp refuses what has waited long enough.
func (q *qp) giveUp() {
	if q.waiting.len() > 0 {
		q.acknowledge(q.waiting.at(0), ackNoRecv)
	}
	for q.waiting.len() > 0 {
		p := q.waiting.pop()
		p.release()
	}
}

// retryLater gives waiting messages another try, not inside the call that posted.
func (q *qp) retryLater() {
	q.inSRQ = false
	if q.waiting.len() > 0 && !q.retrying {
		q.retrying = true
		q.in.later(q.retryNow)
	}
}

func (q *qp) retryNow() {
	q.retrying = false
	for !q.over && q.waiting.len() > 0 {
		p := q.waiting.pop()
		if q.receive(&p) {
			p.release()
			continue
		}
		q.waiting.pushFront(p)
		return
	}
	if q.rnr != nil {
		q.rnr.Stop()
	}
}

// terminate is iWARP's end of a connection that went wrong, at both ends.
func (q *qp) terminate(why string) {
	err := fmt.Errorf("%s: terminated: %w", why, unix.ECONNRESET)
	status := -int32(unix.ECONNRESET)
	q.id.send(MsgDREQ, &message{status: status, err: err})
	q.id.endStream(status, err)
}

// gotAck is what became of a Send.
func (id *ident) gotAck(p *packet) {
	if id == nil || id.qp == nil || id.qp.over || id.far != p.from {
		return
	}
	q := id.qp
	if p.status == ackWait {
		q.stopClock()
		return
	}
	for q.acked+1 < p.seq && q.sends.len() > 0 {
		q.finishSend(verbs.StatusSuccess)
	}
	if p.seq != q.acked+1 {
		return
	}
	q.finishSend(ackStatus[p.status])
	switch {
	case p.status != ackOK:
		q.fail()
	case q.sends.len() == 0:
		q.stopClock()
	default:
		q.startClock()
	}
}
