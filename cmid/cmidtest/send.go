package cmidtest

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid/cmidtest/internal/memory"
	"github.com/rdmactor/rdmactor/verbs"
)

// retryTimeout is how long InfiniBand waits for an acknowledgement before it ends the queue pair.
const retryTimeout = 17 * time.Second

// awaitsData reports whether the peer answers with bytes.
func (e *sendEntry) awaitsData() bool { return e.wr.Op == verbs.Read || e.wr.Op.Atomic() }

// messageOf is the message that each opcode sends.
var messageOf = [...]Message{
	verbs.Send: MsgSend, verbs.SendWithInvalidate: MsgSend, verbs.SendWithImm: MsgSend, verbs.Write: MsgWrite, verbs.Read: MsgRead,
	verbs.AtomicCmpSwap: MsgAtomic, verbs.AtomicFetchAdd: MsgAtomic, verbs.WriteWithImm: MsgWrite,
}

// issueSends sends the work requests that may leave. A Read waits while the peer has no room for
// it. A fenced work request waits while answers are outstanding. The work requests behind them wait
// as well.
func (q *qp) issueSends() {
	for ; q.next < q.sends.Len(); q.next++ {
		e := q.sends.At(q.next)
		// it has failed, or the connection is lost: nothing leaves
		if e.done || q.id.stream.lost != nil {
			return
		}
		if e.awaitsData() && q.reads >= int(q.id.ord) || e.wr.Flags&verbs.Fence != 0 && q.reads > 0 {
			return
		}
		if q.doomed && q.doom == e.wr.Op {
			q.doomed = false
			e.done, e.status = true, q.doomStatus
			q.settleLater()
			return
		}
		q.seq++
		e.seq = q.seq
		p := q.id.cm.newPacket(messageOf[e.wr.Op], nil)
		p.seq, p.imm, p.flags = e.seq, e.wr.Imm, e.wireFlags()
		p.mem = memory.Remote{Addr: e.wr.RemoteAddr, Key: e.wr.RKey, Len: e.n}
		p.atomic = atomicOp{swaps: e.wr.Op == verbs.AtomicCmpSwap, compareAdd: e.wr.CompareAdd, swap: e.wr.Swap}
		if e.awaitsData() {
			q.reads++
		} else {
			p.data = e.gatherBytes()
		}
		e.wr.Inline, e.wr.SGL = nil, nil
		if q.next == 0 {
			q.startClock()
		}
		q.in.f.sendPacket(p)
		if q.in.f.iwarp && e.wr.Op != verbs.Read { // TCP has it
			e.done = true
			q.settleLater()
		}
	}
}

// wireFlags returns the flags of the message.
func (e *sendEntry) wireFlags() (f sendFlags) {
	switch e.wr.Op {
	case verbs.SendWithInvalidate:
		f = flagInvalidate
	case verbs.SendWithImm, verbs.WriteWithImm:
		f = flagImmediate
	default:
	}
	if e.wr.Flags&verbs.Solicited != 0 {
		f |= flagSolicited
	}
	return f
}

// gatherBytes copies the bytes to send.
func (e *sendEntry) gatherBytes() *buffer {
	b := buffers.Get().(*buffer)
	b.b = append(b.b[:0], e.wr.Inline...)
	for _, s := range e.wr.SGL {
		b.b = append(b.b, memory.Bytes(s)...)
	}
	return b
}

// completeSends completes the work requests that are done, in posting order, and sends those that
// may leave now.
func (q *qp) completeSends() {
	if q.over {
		return
	}
	for q.sends.Len() > 0 && q.sends.At(0).done {
		failed := q.sends.At(0).status != verbs.StatusSuccess
		q.finishSend()
		if failed { // Fabric.FailNext
			q.enterError("a work request has failed")
			return
		}
	}
	q.issueSends()
	if q.next > 0 {
		q.startClock()
	} else {
		q.retry.stop()
	}
}

// settleLater calls completeSends in a later turn, not inside the call that posted.
func (q *qp) settleLater() {
	if !q.settling {
		q.settling = true
		q.in.runLater(q.settleFn)
	}
}

// startClock starts the timer for the peer's acknowledgement. On iWARP TCP has a longer one.
func (q *qp) startClock() {
	if !q.in.f.iwarp {
		q.retry.start(q.in.loop, retryTimeout, q.retryFn)
	}
}

// failAt ends the queue pair because of work request i.
func (q *qp) failAt(i int, st verbs.Status) {
	e := q.sends.At(i)
	e.done, e.status = true, st
	q.fail()
}

// answeredIndex returns the index of the work request that p answers. ok is false when none waits
// for p. The peer handles work requests in order, so those before it are done as well.
func (q *qp) answeredIndex(p *packet) (i int, ok bool) {
	if q == nil || q.over || q.id.cm.far != p.from || q.next == 0 {
		return 0, false
	}
	first := q.sends.At(0).seq
	if p.seq < first || p.seq-first >= uint64(q.next) {
		return 0, false
	}
	i = int(p.seq - first)
	for before := range i {
		if e := q.sends.At(before); !e.awaitsData() { // a Read's answer was lost
			e.done = true
		}
	}
	return i, true
}

// gotAck handles the peer's report of how a Send or a Write ended, or why a Read or an atomic
// operation failed.
func (q *qp) gotAck(p *packet) {
	i, ok := q.answeredIndex(p)
	switch {
	case !ok:
	case p.status == ackWait:
		q.completeSends()
		q.retry.stop()
	case p.status != ackOK:
		q.failAt(i, ackStatus[p.status])
	default:
		q.sends.At(i).done = true
		q.completeSends()
	}
}

// gotReadResponse handles the bytes that a Read or an atomic operation asked for.
func (q *qp) gotReadResponse(p *packet) {
	i, ok := q.answeredIndex(p)
	if !ok || q.sends.At(i).done {
		return
	}
	e := q.sends.At(i)
	if !q.pd.Holds(e.sink, verbs.LocalWrite) { // freed in between
		q.failAt(i, verbs.StatusLocProt)
		if q.in.f.iwarp {
			q.terminate("a Read's memory was freed before it was answered")
		}
		return
	}
	copy(memory.Bytes(e.sink), p.data.b)
	e.done = true
	q.reads--
	q.completeSends()
}
