package core

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// sendQueue is the send work requests that are not complete, oldest first.
type sendQueue struct {
	ring  ring.Ring[send]
	limit uint32
	msn   uint32 // of the next Send
	next  int    // index of the first send not completely staged
	keep  int    // how many sends are still to be sent; negative: all
	reads outboundReads
}

// post queues wr, which check has accepted with that many bytes.
func (q *sendQueue) post(wr *verbs.SendWR, total uint32) error {
	s := q.ring.Slot(int(q.limit))
	if s == nil {
		return fmt.Errorf("iwarp: send queue full, %d sends outstanding: %w", q.ring.Len(), unix.ENOMEM)
	}
	*s = send{
		id: wr.ID, total: total, rkey: wr.RKey, raddr: wr.RemoteAddr, op: wr.Op, flags: wr.Flags,
		inline: append(s.inline[:0], wr.Inline...), sgl: append(s.sgl[:0], wr.SGL...),
	}
	return nil
}

// nextSend returns the send whose FPDU may be made next, or nil. A Read waits while as many Reads
// are outstanding as the peer serves at a time. A fenced work request waits until none is
// outstanding. The sends behind a waiting one wait too.
func (q *sendQueue) nextSend() *send {
	n := q.ring.Len()
	if q.keep >= 0 {
		n = q.keep
	}
	if q.next >= n {
		return nil
	}
	s := q.ring.At(q.next)
	out := q.reads.pending()
	if out == 0 || s.begun || s.flags&verbs.Fence == 0 && (s.op != verbs.Read || out < int(q.reads.ord)) {
		return s
	}
	return nil
}

// stageSend makes the next FPDU of a Send or a Write.
func (q *sendQueue) stageSend(o *output, s *send) bool {
	n := min(s.total-s.staged, o.maxSegment)
	h := wire.Header{Last: s.staged+n == s.total}
	if s.op == verbs.Write {
		h.Tagged, h.Opcode, h.STag, h.TO = true, wire.OpWrite, s.rkey, s.raddr+uint64(s.staged)
	} else {
		h.Opcode, h.MSN, h.MO = sendOpcode(s), q.msn, s.staged
		if s.op == verbs.SendWithInvalidate {
			h.STag = s.rkey
		}
	}
	if !o.addFPDU(&h, nil, payload{s: s, n: n}) {
		return false
	}
	s.staged += n
	if h.Last {
		q.recordStaged(s, o.staged)
		if s.op != verbs.Write {
			q.msn++
		}
	}
	return true
}

// recordStaged records that the last FPDU of s is made and ends at stream offset end.
func (q *sendQueue) recordStaged(s *send, end uint64) {
	s.done, s.end = true, end
	q.next++
}

// complete completes finished work requests, in posting order: Sends and Writes when the socket
// took them, up to stream offset sent, Reads when their data is here.
func (q *sendQueue) complete(sent uint64, up Upcalls) {
	for q.ring.Len() > 0 {
		s := q.ring.At(0)
		if !s.done || s.end > sent || s.op == verbs.Read && !s.answered {
			return
		}
		q.completeOldest(up, verbs.StatusSuccess)
	}
}

// completeOldest takes the oldest send off the queue and reports it.
func (q *sendQueue) completeOldest(up Upcalls, st verbs.Status) {
	s := q.ring.At(0)
	wc := verbs.WC{ID: s.id, Op: s.op, Status: st}
	if st == verbs.StatusSuccess {
		wc.Bytes = s.total
	}
	quiet := st == verbs.StatusSuccess && s.flags&verbs.Signaled == 0
	clear(s.sgl) // the regions are the owner's again
	q.ring.Drop()
	if q.next > 0 {
		q.next--
	}
	if q.keep > 0 {
		q.keep--
	}
	if q.reads.oldest > 0 {
		q.reads.oldest--
	}
	if !quiet {
		up.Complete(wc, false)
	}
}

// flush completes all sends; the Read that is being answered, if any, with read. An upcall cannot
// add to them: the state forbids it.
func (q *sendQueue) flush(up Upcalls, read verbs.Status) {
	answering := -1
	if q.reads.out > 0 && !q.reads.rtr {
		answering = q.reads.oldest
	}
	for i := 0; q.ring.Len() > 0; i++ {
		st := verbs.StatusFlushed
		if i == answering {
			st = read
		}
		q.completeOldest(up, st)
	}
	q.reads.out = 0
}

// dropUnstarted keeps the sends that begin before stream offset end, and takes the others back.
func (q *sendQueue) dropUnstarted(end uint64) {
	q.keep = 0
	for q.keep < q.ring.Len() {
		if s := q.ring.At(q.keep); !s.begun || s.begin >= end {
			break
		}
		q.keep++
	}
	for i := q.keep; i < q.next; i++ {
		if q.ring.At(i).op == verbs.Read {
			q.reads.out--
		}
	}
	q.next = min(q.next, q.keep)
}
