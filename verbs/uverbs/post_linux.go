package uverbs

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// PostSend writes wr into the send queue. It is announced to the kernel at the end of the turn.
func (q *queuePair) PostSend(wr *verbs.SendWR) error {
	if q.state != verbs.QPRTS && !q.checkConnected() {
		return fmt.Errorf("uverbs: send on a queue pair in state %d: %w", q.state, verbs.ErrQPState)
	}
	total, err := q.checkSend(wr)
	if err != nil {
		return err
	}
	if q.sends.isFull() {
		return fmt.Errorf("uverbs: send queue full, %d sends outstanding: %w", q.attr.MaxSendWR, unix.ENOMEM)
	}
	signaled := wr.Flags&verbs.Signaled != 0
	// the completion of such a Read is out of order
	reported := signaled || wr.Op == verbs.Read && total > 0 && q.dev.siw
	if !q.postOrKeep(wr, total, reported) {
		return fmt.Errorf("uverbs: send queue full: %w", unix.ENOMEM)
	}
	q.sends.push(send{id: wr.ID, bytes: total, op: wr.Op, signaled: signaled, reported: reported})
	return nil
}

// checkConnected asks an RNIC whether the queue pair is in the state RTS. Its driver changes that
// state on its own.
func (q *queuePair) checkConnected() bool {
	if !q.dev.caps.IWARP || q.gone || q.state != verbs.QPInit && q.state != verbs.QPRTR || q.dev.lost != nil || !q.dev.hw.Connected(q.handle) {
		return false
	}
	q.state = verbs.QPRTS
	return true
}

// checkSend checks wr and returns its length in bytes. It leaves its places in q.list.
func (q *queuePair) checkSend(wr *verbs.SendWR) (total uint32, err error) {
	a := &q.dev.attr
	q.list = q.list[:0]
	switch {
	case q.typ == verbs.UD && wr.Op != verbs.Send && wr.Op != verbs.SendWithImm:
		return 0, badWR("%v on a datagram queue pair", wr.Op)
	case lacksOp(a, wr.Op):
		return 0, fmt.Errorf("uverbs: %v: %w", wr.Op, verbs.ErrNotSupported)
	case wr.Op == verbs.Recv || wr.Op > verbs.WriteWithImm:
		return 0, badWR("opcode %d", wr.Op)
	case len(wr.Inline) > a.MaxInline:
		return 0, badWR("%d inline bytes, more than %d", len(wr.Inline), a.MaxInline)
	case len(wr.Inline) > 0 && len(wr.SGL) > 0:
		return 0, badWR("inline bytes and a scatter/gather list")
	case len(wr.SGL) > q.attr.MaxSGE:
		return 0, badWR("%d scatter/gather elements, more than %d", len(wr.SGL), q.attr.MaxSGE)
	}
	sum := uint64(len(wr.Inline))
	for i := range wr.SGL {
		p, err := q.pd.placeOf(&wr.SGL[i])
		if err != nil {
			return 0, err
		}
		if sum += uint64(p.Length); p.Length > 0 {
			q.list = append(q.list, p)
		}
	}
	if sum > uint64(a.MaxMessage) {
		return 0, badWR("message of %d bytes, more than %d", sum, a.MaxMessage)
	}
	if wr.Op == verbs.Read || wr.Op.Atomic() {
		err = q.checkRead(wr)
	} else if q.typ == verbs.UD {
		err = q.checkDatagram(wr, int(sum))
	}
	return uint32(sum), err
}

// lacksOp reports whether a device with these attributes does not have an operation.
func lacksOp(a *verbs.DeviceAttr, op verbs.Opcode) bool {
	switch {
	case op == verbs.SendWithImm || op == verbs.WriteWithImm:
		return !a.Immediate
	case op.Atomic():
		return !a.Atomics
	}
	return op == verbs.SendWithInvalidate
}

// checkRead does the additional checks for a Read or an atomic operation.
func (q *queuePair) checkRead(wr *verbs.SendWR) error {
	switch {
	case !q.reads:
		return badWR("%v on a connection whose peer serves none: see ConnParam.InitiatorDepth, and the peer's ResponderResources", wr.Op)
	case len(wr.Inline) > 0 || len(wr.SGL) > 1:
		return badWR("%v into %d scatter/gather elements and %d inline bytes, more than one element", wr.Op, len(wr.SGL), len(wr.Inline))
	case len(wr.SGL) == 1 && wr.SGL[0].MR != nil && wr.SGL[0].MR.Access&verbs.LocalWrite == 0:
		return badWR("%v into a region without local write", wr.Op)
	case wr.Op.Atomic() && (len(wr.SGL) == 0 || wr.SGL[0].Length != verbs.AtomicLen):
		return badWR("%v without one scatter/gather element of %d bytes", wr.Op, verbs.AtomicLen)
	}
	return nil
}

// checkDatagram does the additional checks for a datagram. rxe would silently drop one that is too
// long.
func (q *queuePair) checkDatagram(wr *verbs.SendWR, n int) error {
	ah, ok := wr.AH.(*addressHandle)
	switch {
	case !ok || ah.gone || ah.pd != q.pd:
		return badWR("datagram without an address handle of its protection domain")
	case n > q.dev.attr.MaxDatagram:
		return badWR("datagram of %d bytes, more than %d", n, q.dev.attr.MaxDatagram)
	}
	return nil
}

// PostRecv writes wr into the receive queue.
func (q *queuePair) PostRecv(wr verbs.RecvWR) error {
	switch {
	case q.gone || q.state == verbs.QPError || q.dev.lost != nil:
		return badWR("receive on a queue pair that is over")
	case q.srq != nil:
		return badWR("receive posted to a queue pair with a shared receive queue")
	}
	p, err := q.pd.checkRecv(&wr)
	if err != nil {
		return err
	}
	if q.recvs.isFull() || !q.rq.Put(recvCookie|q.recvs.tail, p) {
		return fmt.Errorf("uverbs: receive queue full, %d receives outstanding: %w", q.attr.MaxRecvWR, unix.ENOMEM)
	}
	q.recvs.push(recv{wr.ID, p.Length})
	return nil
}

// announceSends makes the kernel look at the send queue. If the kernel refuses, the queue pair has
// ended and its owner is notified. The posted work requests are then flushed with the rest.
func (q *queuePair) announceSends() {
	q.dirty = false
	d := q.dev
	if q.gone || q.leaving != nil || d.lost != nil || d.closed {
		return
	}
	switch err := d.hw.Announce(q.handle, q.sq); {
	case err == nil:
		q.refused = 0
	case errors.Is(err, hca.ErrRefused):
		q.sendCQ.wakeOwner()
	case errors.Is(err, unix.EIO) || errors.Is(err, unix.ENODEV) || isDenied(err):
		d.handleGone(err)
	case errors.Is(err, unix.ENOTCONN) && d.siw && q.refused < announcements:
		q.announceLater()
	default:
		q.markEnded()
		q.notifyEvent(verbs.QPFatal)
	}
}

// announcements is how often siw is asked again to look at the send queue: after 1 ms, 2 ms, 4 ms
// and so on, for a second in all.
const announcements = 10

// announceLater repeats the announcement later. siw does not wait for a queue pair's lock: if the
// queue pair's state is being changed at that moment, siw answers as if there were no connection.
// If the connection has really ended, that is reported before the last repetition.
func (q *queuePair) announceLater() {
	if q.awaits {
		return
	}
	q.awaits = true
	q.dev.loop.AfterFunc(time.Millisecond<<q.refused, func() {
		q.awaits = false
		if q.state == verbs.QPRTS && !q.dirty {
			q.announceSends()
		}
	})
	q.refused++
}
