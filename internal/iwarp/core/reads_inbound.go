package core

import (
	"math/bits"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// inboundReads is the peer's Reads: DDP's untagged queue 1, and the responses owed.
type inboundReads struct {
	ird    uint16                  // negotiated
	closed bool                    // no further response is queued
	yield  bool                    // a response was just finished: it is a send's turn
	msn    uint32                  // of the next Read Request
	owed   ring.Ring[readResponse] // in order
	// a response could not be finished because its memory is gone; Timeout reports it
	lost *fault
}

// readResponse is the response that a Read Request of the peer still has to get.
type readResponse struct {
	stag         uint32 // the peer's sink
	to           uint64
	source       *verbs.MR // local; nil: the Read is empty
	offset       uint32    // in source
	size, staged uint32
}

// readDenied is how a Terminate reports each denial for a Read Request (RFC 5040 section 7).
var readDenied = [...]struct {
	code uint8
	text string
}{
	withheld: {2, "by a peer that may not read"},
	badSTag:  {0, "which is not registered, or not any more"},
	foreign:  {3, "which is of another protection domain"},
	noRight:  {2, "which peers may not read"},
	wraps:    {4, "beyond the end of the address space"},
	outside:  {1, "outside the region"},
}

// check checks a Read Request.
func (q *inboundReads) check(s *segment, a *access) *fault {
	h := &s.h
	switch {
	case h.QN != h.Opcode.Queue():
		return ddpFault(wire.DDPUntagged, 1, "Read Request on queue %d", h.QN)
	case h.MSN != q.msn:
		return ddpFault(wire.DDPUntagged, 3, "Read Request with MSN %d, should be %d", h.MSN, q.msn)
	case h.MO != 0:
		return ddpFault(wire.DDPUntagged, 4, "Read Request with MO %d", h.MO)
	case s.size != 0 || !h.Last:
		return ddpFault(wire.DDPUntagged, 5, "Read Request longer than its header")
	}
	r := s.readRequest()
	if limit := q.limit(r.Size); q.owed.Len() >= limit {
		return rdmapFault(wire.RDMAPOperation, 7, "more than %d Reads outstanding", limit)
	}
	_, f := a.responseTo(r)
	return f
}

// responseTo returns the response owed for q.
func (a *access) responseTo(q wire.ReadRequest) (readResponse, *fault) {
	o := readResponse{stag: q.SinkSTag, to: q.SinkTO, size: q.Size}
	if q.Size == 0 {
		return o, nil
	}
	var d denial
	if o.source, o.offset, d = a.checkPeer(q.SourceSTag, q.SourceTO, q.Size, verbs.RemoteRead); d != allowed {
		w := &readDenied[d]
		return o, rdmapFault(wire.RDMAPProtection, w.code, "Read of %d bytes of STag %#x at TO %#x, %s", q.Size, q.SourceSTag, q.SourceTO, w.text)
	}
	return o, nil
}

// limit returns how many Read Responses may be pending when a Read of that size arrives. siw rounds
// its IRD up to a power of two, and its responder takes one more than it queues. An empty Read is
// served in any case: adapters send one as ready-to-receive, in revision 1 without having announced
// it.
func (q *inboundReads) limit(size uint32) int {
	switch {
	case q.ird > 0:
		return 1<<bits.Len16(q.ird-1) + 1
	case size == 0:
		return 1
	}
	return 0
}

// deliver queues the response to a Read Request.
func (q *inboundReads) deliver(s *segment, a *access) *fault {
	q.msn++
	if q.closed {
		return nil
	}
	r := s.readRequest()
	o, f := a.responseTo(r)
	if f != nil { // freed since its first bytes arrived
		return f
	}
	*q.owed.Slot(q.limit(r.Size)) = o
	return nil
}

// answering reports whether a response has been staged in part.
func (q *inboundReads) answering() bool { return q.owed.Len() > 0 && q.owed.At(0).staged > 0 }

// stage makes the next FPDU of the oldest response. The result is false if it cannot be made.
func (q *inboundReads) stage(o *output, a *access) bool {
	r := q.owed.At(0)
	n := min(r.size-r.staged, o.maxSegment)
	h := wire.Header{
		Tagged: true, Last: r.staged+n == r.size, Opcode: wire.OpReadResponse, STag: r.stag, TO: r.to + uint64(r.staged),
	}
	var p payload
	if r.source != nil {
		if a.regions.find(r.source.RKey) != r.source {
			q.lost = newFault(wire.LayerRDMAP, wire.RDMAPProtection, 0, "the region that the peer reads is gone")
			return false
		}
		from := r.offset + r.staged
		p = payload{one: r.source.Bytes[from : from+n], n: n}
	}
	if !o.addFPDU(&h, nil, p) {
		return false
	}
	r.staged += n
	if h.Last {
		q.owed.Pop()
		q.yield = true
	}
	return true
}

// dropUnstarted drops the responses, except one that has begun and whose staged bytes all remain,
// and queues no further one: otherwise the FIN might never be sent.
func (q *inboundReads) dropUnstarted(remain bool) {
	q.closed = true
	answering := remain && q.answering()
	for q.owed.Len() > 1 || q.owed.Len() == 1 && !answering {
		q.owed.DropLast()
	}
	if !answering {
		q.lost = nil
	}
}

// drop drops all responses.
func (q *inboundReads) drop() { q.owed, q.lost = ring.Ring[readResponse]{}, nil }
