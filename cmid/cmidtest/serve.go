package cmidtest

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid/cmidtest/internal/memory"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// rnrTimer is how long InfiniBand waits before it repeats a message that found no receive. It
// repeats the message RNRRetryCount times.
const rnrTimer = 655 * time.Millisecond

// gotWork handles a Send, a Write, a Read or an atomic operation of the peer.
func (in *instance) gotWork(id *driverID, p *packet) {
	if id == nil || id.qp == nil || id.qp.over || id.stream.lost != nil || id.cm.far != p.from {
		// This end has given up the stream, and the other does not know. TCP answers with a reset.
		if in.f.iwarp {
			in.f.answerPacket(p, p.to, MsgDREQ, connReset)
		}
		return // without an acknowledgement
	}
	switch id.state {
	case states.Accepting: // IBV_EVENT_COMM_EST: the RTU is late or lost
		id.becomeEstablished()
		if id.qp == nil || id.qp.over {
			return
		}
	case states.Connected:
	default:
		return
	}
	q := id.qp
	if p.seq != q.came+1 {
		return // an earlier one was lost
	}
	q.came++
	if q.came == 1 && id.cm.isPassive() && in.f.isOverlooked() {
		q.missed = true
	} else if q.waiting.Len() == 0 {
		if q.serveRequest(p) {
			return
		}
		if q.waitsForReceive() && q.waiting.Len() == 0 {
			q.sendAck(p, ackWait)
		}
	}
	q.waiting.Push(*p)
	p.data = nil
	if q.came > 1 {
		q.handleOverlooked()
	}
}

// handleOverlooked makes the queue pair handle overlooked messages (Fabric.Overlook).
func (q *qp) handleOverlooked() {
	if q.missed {
		q.missed = false
		q.retryLater()
	}
}

// serveRequest executes a work request of the peer. It returns false when the message has to wait
// for a receive.
func (q *qp) serveRequest(p *packet) (done bool) {
	switch p.kind {
	case MsgWrite:
		to, ok := q.reachMemory(p, verbs.RemoteWrite, "a Write")
		if ok && p.flags&flagImmediate != 0 {
			return q.receiveSend(p, to)
		}
		if ok {
			copy(to, p.data.b)
			q.sendAck(p, ackOK)
		}
		return true
	case MsgRead:
		if from, ok := q.reachMemory(p, verbs.RemoteRead, "a Read"); ok {
			q.sendReadResponse(p, from)
		}
		return true
	case MsgAtomic:
		if at, ok := q.reachMemory(p, verbs.RemoteAtomic, "an atomic operation"); ok {
			q.serveAtomic(p, at)
		}
		return true
	case MsgDREQ:
		if q.id.state == states.Connected {
			q.id.stream.end(p.cm)
		}
		return true
	default:
		return q.receiveSend(p, nil)
	}
}

// reachMemory returns the memory that p describes. An access that is not allowed ends the
// connection. iWARP checks nothing of an access without bytes.
func (q *qp) reachMemory(p *packet, access verbs.Access, what string) (b []byte, ok bool) {
	if q.denied&access != 0 && (p.mem.Len > 0 || !q.in.f.iwarp) {
		q.sendAck(p, ackInvalid)
		q.enterError(fmt.Sprintf("%s of %d bytes: the queue pair does not allow it", what, p.mem.Len))
		return nil, false
	}
	b, err := q.pd.Reach(p.mem, access)
	if err != nil {
		q.sendAck(p, ackAccess)
		q.enterError(fmt.Sprintf("%s of %d bytes: %v", what, p.mem.Len, err))
	}
	return b, err == nil
}

// sendReadResponse sends the peer the bytes that it asked for.
func (q *qp) sendReadResponse(p *packet, b []byte) {
	r := q.id.cm.newPacket(MsgReadResponse, nil)
	r.seq, r.data = p.seq, buffers.Get().(*buffer)
	r.data.b = append(r.data.b[:0], b...)
	q.in.f.sendPacket(r)
}

// serveAtomic does the peer's atomic operation and answers with the old value. Only the loop
// changes the memory, so the operation is atomic.
func (q *qp) serveAtomic(p *packet, at []byte) {
	if p.mem.Addr%verbs.AtomicLen != 0 {
		q.sendAck(p, ackInvalid)
		q.fail()
		return
	}
	q.sendReadResponse(p, at)
	switch old := binary.NativeEndian.Uint64(at); {
	case !p.atomic.swaps:
		binary.NativeEndian.PutUint64(at, old+p.atomic.compareAdd)
	case old == p.atomic.compareAdd:
		binary.NativeEndian.PutUint64(at, p.atomic.swap)
	}
}

// receiveSend puts a Send into a receive. A Write with immediate data goes to the memory that it
// names, and only uses up the receive. The result is false when the message has to wait for a
// receive.
func (q *qp) receiveSend(p *packet, named []byte) (done bool) {
	wr, ok := q.takeRecv()
	switch {
	case !ok && q.waitsForReceive():
		q.joinSRQ()
		return false
	case !ok && q.in.f.iwarp:
		q.terminate("a Send came that found no receive posted")
		return true
	case !ok:
		q.waitFor(p)
		return false
	}
	wc := verbs.WC{ID: wr.ID, Op: verbs.Recv, QP: q}
	st, answer, why := q.judgeReceive(p, wr.SGE)
	if wc.Status = st; why != "" {
		q.rq.add(wc, false)
		q.sendAck(p, answer)
		q.enterError(why)
		return true
	}
	if p.flags&flagInvalidate != 0 {
		wc.InvalidatedRKey = p.mem.Key
	}
	p.addImmediate(&wc)
	to := named
	if p.kind == MsgWrite {
		wc.Op = verbs.RecvWrite
	} else {
		to = memory.Bytes(wr.SGE)
	}
	wc.Bytes = uint32(copy(to, p.data.b))
	q.addCompletion(q.rq, wc, p.flags&flagSolicited != 0)
	q.sendAck(p, ackOK)
	return true
}

// judgeReceive returns how the receive of a message completes. If why is not empty, the message
// ends the connection.
func (q *qp) judgeReceive(p *packet, to verbs.SGE) (st verbs.Status, answer ack, why string) {
	switch {
	case q.doomed && q.doom == verbs.Recv:
		q.doomed = false
		return q.doomStatus, ackFault, "a receive has failed"
	case p.kind == MsgWrite: // the receive's memory stays unchanged
	case !q.pd.Holds(to, verbs.LocalWrite):
		return verbs.StatusLocProt, ackFault, "a receive's memory was freed"
	case len(p.data.b) > int(to.Length):
		return verbs.StatusLocLen, ackInvalid, fmt.Sprintf("a Send of %d bytes came into a receive of %d", len(p.data.b), to.Length)
	case p.flags&flagInvalidate != 0 && q.denied == remoteRights:
		return verbs.StatusRemInvReq, ackInvalid, "a Send takes a key back that the queue pair does not let its peer use"
	case p.flags&flagInvalidate != 0:
		if err := q.pd.Invalidate(p.mem.Key); err != nil {
			return verbs.StatusRemInvReq, ackInvalid, fmt.Sprintf("a Send takes a key back: %v", err)
		}
	}
	return verbs.StatusSuccess, ackOK, ""
}

// takeRecv takes the oldest receive.
func (q *qp) takeRecv() (wr verbs.RecvWR, ok bool) {
	if q.paused {
		return wr, false
	}
	if q.srq != nil {
		return q.srq.takeFor(q)
	}
	if q.recvs.Len() == 0 {
		return wr, false
	}
	return q.recvs.Pop(), true
}

// sendAck answers the sender, on InfiniBand only.
func (q *qp) sendAck(p *packet, st ack) {
	if q.in.f.iwarp {
		return
	}
	a := q.id.cm.newPacket(MsgAck, nil)
	a.seq, a.status = p.seq, st
	q.in.f.sendPacket(a)
}

// waitsForReceive reports whether a message that finds no receive waits without a time limit. A
// program that is asked for receives may have none to post for a while (verbs.SRQInitAttr.OnEmpty).
func (q *qp) waitsForReceive() bool {
	return q.paused || q.srq != nil && q.srq.asksForReceives()
}

// joinSRQ puts q into the line for the next shared receive.
func (q *qp) joinSRQ() {
	if q.srq != nil && !q.inSRQ && !q.paused {
		q.inSRQ = true
		q.srq.waiting = append(q.srq.waiting, q)
		q.srq.scheduleServe()
	}
}

// waitFor imitates InfiniBand's RNR (receiver not ready): the sender repeats the message as often
// as this side allows.
func (q *qp) waitFor(p *packet) {
	q.joinSRQ()
	q.sendAck(p, ackWait)
	n := q.id.own.RNRRetryCount
	if n == retriesNoEnd {
		return
	}
	q.rnr.start(q.in.loop, time.Duration(n)*rnrTimer, q.giveUp)
}

// giveUp refuses messages that have waited for too long.
func (q *qp) giveUp() {
	if q.waiting.Len() > 0 {
		q.sendAck(q.waiting.At(0), ackNoRecv)
	}
	q.dropWaiting()
}

// retryLater makes waiting messages look for receives in a later turn, not inside the call that
// posted one.
func (q *qp) retryLater() {
	if q.waiting.Len() > 0 && !q.missed && !q.retrying {
		q.retrying = true
		q.in.runLater(q.retryNow)
	}
}

// retryNow makes waiting messages look for receives.
func (q *qp) retryNow() {
	q.retrying = false
	for !q.over && q.waiting.Len() > 0 {
		p := q.waiting.Pop()
		if !q.serveRequest(&p) {
			q.waiting.PushFront(p)
			return
		}
		p.release()
		if q.id.stream.lost != nil && !q.over {
			q.id.stream.awaitReceives()
		}
	}
	q.rnr.stop()
	q.id.stream.endLost()
}
