package core

import (
	"math"
	"math/bits"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// How a Terminate reports each denial, for a tagged message (RFC 5041 section 7.1; the right to
// write is RDMAP's to check) and for a Read Request (RFC 5040 section 7).
var (
	writeDenied = [...]struct {
		layer      wire.Layer
		kind, code uint8
		text       string
	}{
		withheld: {wire.LayerRDMAP, wire.RDMAPProtection, 2, "by a peer that may not write"},
		badSTag:  {wire.LayerDDP, wire.DDPTagged, 0, "which is not registered, or not any more"},
		foreign:  {wire.LayerDDP, wire.DDPTagged, 2, "which is of another protection domain"},
		noRight:  {wire.LayerRDMAP, wire.RDMAPProtection, 2, "which peers may not write"},
		wraps:    {wire.LayerDDP, wire.DDPTagged, 3, "beyond the end of the address space"},
		outside:  {wire.LayerDDP, wire.DDPTagged, 1, "outside the region"},
	}
	readDenied = [...]struct {
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
)

// checkAccess finds the n > 0 bytes from to of the region stag for a peer that wants right. A peer
// without any right does not learn which keys exist. In Go memory and in a region's addresses
// nothing wraps, so bounds are compared by subtraction.
func (c *Conn) checkAccess(stag uint32, to uint64, n uint32, right verbs.Access) (mr *verbs.MR, offset uint32, d denial) {
	mr = c.cfg.Regions.find(stag)
	switch {
	case c.cfg.Withheld&right != 0:
		return nil, 0, withheld
	case mr == nil:
		return nil, 0, badSTag
	case mr.PD != c.cfg.PD:
		return nil, 0, foreign
	case mr.Access&right == 0:
		return nil, 0, noRight
	case uint64(n-1) > math.MaxUint64-to:
		return nil, 0, wraps
	}
	off, size := to-mr.Addr, uint64(len(mr.Bytes))
	if off > size || uint64(n) > size-off {
		return nil, 0, outside
	}
	return mr, uint32(off), allowed
}

// isUsable reports whether mr is still this connection's, or shared, or nil.
func (c *Conn) isUsable(mr *verbs.MR) bool {
	if mr == nil || mr.PD == c.cfg.PD {
		return true
	}
	shared := c.cfg.Regions.sharedPD()
	return shared != nil && mr.PD == shared
}

// freedFault returns the fault for a segment whose memory was freed while its message arrived, or
// while it was posted.
func (c *Conn) freedFault() *fault {
	if op := c.rx.h.Opcode; op == wire.OpWrite {
		return ddpFault(wire.DDPTagged, 0, "Write to STag %#x, which was taken back in its middle", c.rx.h.STag)
	}
	f := ddpFault(wire.TypeCatastrophic, 0, "%v into memory that was freed", c.rx.h.Opcode)
	f.hitBy(c.rx.h.Opcode, verbs.StatusLocProt)
	return f
}

// checkWriteSegment checks a segment of a Write. An empty one touches nothing, so nothing is looked
// up.
func (c *Conn) checkWriteSegment() *fault {
	r := &c.rx
	h, t := &r.h, &r.tag
	switch {
	case t.busy && t.op != wire.OpWrite:
		return rdmapFault(wire.RDMAPOperation, 6, "%v in the middle of a %v", h.Opcode, t.op)
	case t.busy && h.STag != t.stag:
		return ddpFault(wire.DDPTagged, 0, "Write to STag %#x goes on with STag %#x", t.stag, h.STag)
	case t.busy && h.TO != t.next:
		return ddpFault(wire.DDPTagged, 1, "Write goes on at TO %#x, should be %#x", h.TO, t.next)
	case r.seg == 0:
		return nil
	}
	mr, off, d := c.checkAccess(h.STag, h.TO, r.seg, verbs.RemoteWrite)
	if d != allowed {
		w := &writeDenied[d]
		f := ddpFault(w.kind, w.code, "Write of %d bytes to STag %#x at TO %#x, %s", r.seg, h.STag, h.TO, w.text)
		f.err.Layer = w.layer
		return f
	}
	r.mr, r.dst = mr, mr.Bytes[off:off+r.seg:off+r.seg]
	return nil
}

// parseReadRequest returns the Read Request that has arrived: its headers are complete.
func (r *rx) parseReadRequest() wire.ReadRequest {
	q, _, _ := wire.ConsumeReadRequest(r.hdr[wire.LengthLen+wire.UntaggedLen : r.have])
	return q
}

// checkReadRequest checks a Read Request.
func (c *Conn) checkReadRequest() *fault {
	r := &c.rx
	h := &r.h
	switch {
	case h.QN != h.Opcode.Queue():
		return ddpFault(wire.DDPUntagged, 1, "Read Request on queue %d", h.QN)
	case h.MSN != r.readMSN:
		return ddpFault(wire.DDPUntagged, 3, "Read Request with MSN %d, should be %d", h.MSN, r.readMSN)
	case h.MO != 0:
		return ddpFault(wire.DDPUntagged, 4, "Read Request with MO %d", h.MO)
	case r.seg != 0 || !h.Last:
		return ddpFault(wire.DDPUntagged, 5, "Read Request longer than its header")
	}
	q := r.parseReadRequest()
	if limit := c.readLimit(q.Size); c.tx.owed.Len() >= limit {
		return rdmapFault(wire.RDMAPOperation, 7, "more than %d Reads outstanding", limit)
	}
	_, f := c.responseTo(q)
	return f
}

// responseTo returns the response owed for q.
func (c *Conn) responseTo(q wire.ReadRequest) (readResponse, *fault) {
	o := readResponse{stag: q.SinkSTag, to: q.SinkTO, size: q.Size}
	if q.Size == 0 {
		return o, nil
	}
	var d denial
	if o.source, o.offset, d = c.checkAccess(q.SourceSTag, q.SourceTO, q.Size, verbs.RemoteRead); d != allowed {
		w := &readDenied[d]
		return o, rdmapFault(wire.RDMAPProtection, w.code, "Read of %d bytes of STag %#x at TO %#x, %s", q.Size, q.SourceSTag, q.SourceTO, w.text)
	}
	return o, nil
}

// readLimit returns how many Read Responses may be pending when a Read of that size arrives. siw
// rounds its IRD up to a power of two, and its responder takes one more than it queues. An empty
// Read is served in any case: adapters send one as ready-to-receive, in revision 1 without having
// announced it.
func (c *Conn) readLimit(size uint32) int {
	switch {
	case c.ird > 0:
		return 1<<bits.Len16(c.ird-1) + 1
	case size == 0:
		return 1
	}
	return 0
}

// queueReadResponse queues the answer to a Read Request. After Disconnect no further one is queued:
// otherwise the FIN might never be sent.
func (c *Conn) queueReadResponse(now time.Time) {
	r := &c.rx
	r.readMSN++
	if c.state == stFinishing {
		return
	}
	q := r.parseReadRequest()
	o, f := c.responseTo(q)
	if f != nil { // freed since its first bytes arrived
		c.failWithTerminate(now, f)
		return
	}
	*c.tx.owed.Slot(c.readLimit(q.Size)) = o
}

// checkReadResponse checks a segment of the answer to the oldest Read.
func (c *Conn) checkReadResponse() *fault {
	r := &c.rx
	h, t := &r.h, &r.tag
	if t.busy && t.op != wire.OpReadResponse {
		return rdmapFault(wire.RDMAPOperation, 6, "%v in the middle of a %v", h.Opcode, t.op)
	}
	if r.orphans > 0 && !r.rtrOut {
		return nil
	}
	var rtr send // reads nothing
	s := &rtr
	if !r.rtrOut {
		if c.tx.readsOut == 0 {
			return ddpFault(wire.TypeCatastrophic, 0, "Read Response without a Read")
		}
		if s = c.sq.At(c.tx.oldRead); s.end > c.tx.sent {
			return ddpFault(wire.TypeCatastrophic, 0, "Read Response before the Read Request is out")
		}
	}
	stag, to := s.readSink()
	at := to + uint64(s.staged)
	switch {
	case h.STag != stag:
		return ddpFault(wire.DDPTagged, 0, "Read Response to STag %#x, should be %#x", h.STag, stag)
	case h.TO != at:
		return ddpFault(wire.DDPTagged, 1, "Read Response at TO %#x, should be %#x", h.TO, at)
	case r.seg > s.total-s.staged || h.Last != (r.seg == s.total-s.staged):
		return ddpFault(wire.DDPTagged, 1, "Read Response of %d bytes, last: %t, where %d of %d are to come",
			r.seg, h.Last, s.total-s.staged, s.total)
	case r.seg == 0:
		return nil
	}
	e := &s.sgl[0]
	if !c.isUsable(e.MR) {
		return c.freedFault()
	}
	end := s.staged + r.seg
	r.mr, r.dst = e.MR, sgeBytes(e)[s.staged:end:end]
	return nil
}

// readResponseReceived counts a segment of a Read Response, and completes the Read with the last.
func (c *Conn) readResponseReceived() {
	r := &c.rx
	if r.rtrOut {
		r.rtrOut = false
		return
	}
	if r.orphans > 0 {
		if r.h.Last {
			r.orphans--
		}
		return
	}
	t := &c.tx
	s := c.sq.At(t.oldRead)
	s.staged += r.seg
	if !r.h.Last {
		return
	}
	s.answered = true
	if t.readsOut--; t.readsOut > 0 {
		for t.oldRead++; c.sq.At(t.oldRead).op != verbs.Read; t.oldRead++ {
		}
	}
	c.completeSends()
}

// invalidateForPeer revokes the key of a region at the peer's request (RFC 5040 section 5.3). The
// region must be open to this peer.
func (c *Conn) invalidateForPeer(stag uint32) *fault {
	mr := c.cfg.Regions.find(stag)
	if mr == nil || mr.PD != c.cfg.PD || mr.Access&^c.cfg.Withheld&(verbs.RemoteWrite|verbs.RemoteRead) == 0 {
		f := rdmapFault(wire.RDMAPProtection, 9, "%v of STag %#x, which is not a region open to this peer", c.rx.op, stag)
		f.hit.recv = verbs.StatusRemInvReq
		return f
	}
	c.cfg.Regions.invalidate(stag)
	return nil
}
