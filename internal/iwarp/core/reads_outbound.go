package core

import (
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// outboundReads is the Reads of the send queue whose requests are staged and not yet answered.
type outboundReads struct {
	ord     uint16 // negotiated
	rtr     bool   // the ready-to-receive Read, which is before all others, is not answered
	msn     uint32 // of the next Read Request
	out     int32  // without the ready-to-receive Read
	orphans int32  // Read Responses under way whose Reads were flushed
	oldest  int    // its index in the send queue
}

// pending returns how many Reads the peer has not answered.
func (r *outboundReads) pending() int {
	if r.rtr {
		return int(r.out) + 1
	}
	return int(r.out)
}

// stageRequest makes the FPDU of a Read Request.
func (r *outboundReads) stageRequest(o *output, q *wire.ReadRequest) bool {
	op := wire.OpReadRequest
	h := wire.Header{Last: true, Opcode: op, QN: op.Queue(), MSN: r.msn}
	if !o.addFPDU(&h, q, payload{}) {
		return false
	}
	r.msn++
	return true
}

// stageRead makes the Read Request of s.
func (q *sendQueue) stageRead(o *output, s *send) bool {
	r := wire.ReadRequest{Size: s.total, SourceSTag: s.rkey, SourceTO: s.raddr}
	r.SinkSTag, r.SinkTO = s.readSink()
	if !q.reads.stageRequest(o, &r) {
		return false
	}
	if q.reads.out == 0 {
		q.reads.oldest = q.next
	}
	q.reads.out++
	q.recordStaged(s, o.staged)
	return true
}

// placeResponse returns the memory for a segment of the answer to the oldest Read, whose request
// must lie before stream offset sent.
func (q *sendQueue) placeResponse(g *segment, sent uint64, a *access) (dst []byte, mr *verbs.MR, f *fault) {
	h := &g.h
	if q.reads.orphans > 0 && !q.reads.rtr {
		return nil, nil, nil
	}
	var rtr send // reads nothing
	s := &rtr
	if !q.reads.rtr {
		if q.reads.out == 0 {
			return nil, nil, ddpFault(wire.TypeCatastrophic, 0, "Read Response without a Read")
		}
		if s = q.ring.At(q.reads.oldest); s.end > sent {
			return nil, nil, ddpFault(wire.TypeCatastrophic, 0, "Read Response before the Read Request is out")
		}
	}
	stag, to := s.readSink()
	at := to + uint64(s.staged)
	switch {
	case h.STag != stag:
		return nil, nil, ddpFault(wire.DDPTagged, 0, "Read Response to STag %#x, should be %#x", h.STag, stag)
	case h.TO != at:
		return nil, nil, ddpFault(wire.DDPTagged, 1, "Read Response at TO %#x, should be %#x", h.TO, at)
	case g.size > s.total-s.staged || h.Last != (g.size == s.total-s.staged):
		return nil, nil, ddpFault(wire.DDPTagged, 1, "Read Response of %d bytes, last: %t, where %d of %d are to come",
			g.size, h.Last, s.total-s.staged, s.total)
	case g.size == 0:
		return nil, nil, nil
	}
	mr = s.sgl[0].MR
	if !a.isUsable(mr) {
		return nil, nil, freedFault(h)
	}
	return q.restOfRead()[:g.size:g.size], mr, nil
}

// restOfRead returns the memory of the oldest Read behind the segments that are complete.
func (q *sendQueue) restOfRead() []byte {
	s := q.ring.At(q.reads.oldest)
	return sgeBytes(&s.sgl[0])[s.staged:s.total]
}

// deliverResponse counts a complete segment of a Read Response, and completes the Read with the
// last.
func (q *sendQueue) deliverResponse(g *segment, sent uint64, up Upcalls) {
	r := &q.reads
	if r.rtr {
		r.rtr = false
		return
	}
	if r.orphans > 0 {
		if g.h.Last {
			r.orphans--
		}
		return
	}
	s := q.ring.At(r.oldest)
	s.staged += g.size
	if !g.h.Last {
		return
	}
	s.answered = true
	if r.out--; r.out > 0 {
		for r.oldest++; q.ring.At(r.oldest).op != verbs.Read; r.oldest++ {
		}
	}
	q.complete(sent, up)
}
