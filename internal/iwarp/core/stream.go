package core

import (
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// stream is the connection's RDMAP Stream (RFC 5040): what its segments do to memory and to the
// work requests.
type stream struct {
	access   access
	receives receives
	sends    sendQueue
	served   inboundReads
	tagged   tagged
}

// tagged is the Write or Read Response in progress, between two of its segments.
type tagged struct {
	op   wire.Opcode
	busy bool
	stag uint32
	next uint64 // TO
}

// writeDenied is how a Terminate reports each denial for a tagged message (RFC 5041 section 7.1;
// the right to write is RDMAP's to check).
var writeDenied = [...]struct {
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

// place checks the headers of a segment before its payload arrives, and returns the payload's
// destination. Its Read Request, if it answers one, must lie before stream offset sent.
func (t *stream) place(s *segment, sent uint64) (dst []byte, mr *verbs.MR, f *fault) {
	switch op := s.h.Opcode; {
	case op.Send():
		dst, mr, f = t.receives.place(s, &t.access)
	case op == wire.OpWrite:
		dst, mr, f = t.placeWrite(s)
	case op == wire.OpReadRequest:
		f = t.served.check(s, &t.access)
	case op == wire.OpReadResponse:
		if f = t.tagged.checkMessage(op); f == nil {
			dst, mr, f = t.sends.placeResponse(s, sent, &t.access)
		}
	case op == wire.OpTerminate:
	default:
		f = rdmapFault(wire.RDMAPOperation, 6, "unexpected %v", op)
	}
	if f != nil && f.hit == flushed {
		f.hitBy(s.h.Opcode, verbs.StatusGeneral)
	}
	return dst, mr, f
}

// checkMessage checks that the tagged message in progress, if any, is an op.
func (t *tagged) checkMessage(op wire.Opcode) *fault {
	if t.busy && t.op != op {
		return rdmapFault(wire.RDMAPOperation, 6, "%v in the middle of a %v", op, t.op)
	}
	return nil
}

// placeWrite returns the memory for a segment of a Write. An empty one touches nothing, so nothing
// is looked up.
func (t *stream) placeWrite(s *segment) (dst []byte, mr *verbs.MR, f *fault) {
	h, m := &s.h, &t.tagged
	if f = m.checkMessage(h.Opcode); f != nil {
		return nil, nil, f
	}
	switch {
	case m.busy && h.STag != m.stag:
		return nil, nil, ddpFault(wire.DDPTagged, 0, "Write to STag %#x goes on with STag %#x", m.stag, h.STag)
	case m.busy && h.TO != m.next:
		return nil, nil, ddpFault(wire.DDPTagged, 1, "Write goes on at TO %#x, should be %#x", h.TO, m.next)
	case s.size == 0:
		return nil, nil, nil
	}
	mr, off, d := t.access.checkPeer(h.STag, h.TO, s.size, verbs.RemoteWrite)
	if d != allowed {
		w := &writeDenied[d]
		f = ddpFault(w.kind, w.code, "Write of %d bytes to STag %#x at TO %#x, %s", s.size, h.STag, h.TO, w.text)
		f.err.Layer = w.layer
		return nil, nil, f
	}
	return mr.Bytes[off : off+s.size : off+s.size], mr, nil
}

// freedFault returns the fault for a segment whose memory was freed while its message arrived, or
// while it was posted.
func freedFault(h *wire.Header) *fault {
	if h.Opcode == wire.OpWrite {
		return ddpFault(wire.DDPTagged, 0, "Write to STag %#x, which was taken back in its middle", h.STag)
	}
	f := ddpFault(wire.TypeCatastrophic, 0, "%v into memory that was freed", h.Opcode)
	f.hitBy(h.Opcode, verbs.StatusLocProt)
	return f
}

// deliver processes a complete segment. sent is as for place.
func (t *stream) deliver(s *segment, sent uint64, up Upcalls) *fault {
	switch op := s.h.Opcode; {
	case op.Send():
		return t.receives.deliver(s, &t.access, up)
	case op == wire.OpReadRequest:
		return t.served.deliver(s, &t.access)
	}
	t.tagged = tagged{op: s.h.Opcode, stag: s.h.STag, next: s.h.TO + uint64(s.size), busy: !s.h.Last}
	if s.h.Opcode == wire.OpReadResponse {
		t.sends.deliverResponse(s, sent, up)
	}
	return nil
}

// inMessage reports whether the input is between two segments of a message.
func (t *stream) inMessage() bool { return t.receives.taken || t.tagged.busy }

// isFirst reports whether the segment that place has accepted is its message's first.
func (t *stream) isFirst() bool { return t.receives.off == 0 && !t.tagged.busy }

// restOfMessage returns the memory of the message in progress behind its complete segments. The
// next segment is one of it.
func (t *stream) restOfMessage(op wire.Opcode) []byte {
	switch {
	case op.Send():
		return t.receives.rest()
	case op == wire.OpReadResponse: // a large one: not the ready-to-receive Read's
		return t.sends.restOfRead()
	}
	return nil
}

// isIdle reports whether no send and no response is left.
func (t *stream) isIdle() bool { return t.served.owed.Len() == 0 && t.sends.ring.Len() == 0 }

// hasOutput reports whether stageNext has something to make an FPDU of.
func (t *stream) hasOutput() bool { return t.served.owed.Len() > 0 || t.sends.nextSend() != nil }

// stageNext makes one FPDU, if there is something to make one of, and room. A message of several
// FPDUs is not interrupted. Then come those of first. Read Responses and sends take turns.
func (t *stream) stageNext(o *output, first *ctl) bool {
	s := t.sends.nextSend()
	switch {
	case t.served.answering():
		return t.served.stage(o, &t.access)
	case s != nil && s.begun:
		return t.stageSend(o, s)
	case *first&ctlWrite != 0:
		h := wire.Header{Tagged: true, Last: true, Opcode: wire.OpWrite, STag: 1}
		if !o.addFPDU(&h, nil, payload{}) {
			return false
		}
		*first &^= ctlWrite
		return true
	case *first&ctlRead != 0:
		if !t.sends.reads.stageRequest(o, &wire.ReadRequest{SourceSTag: 1}) {
			return false
		}
		*first &^= ctlRead
		return true
	case t.served.owed.Len() > 0 && (s == nil || !t.served.yield):
		return t.served.stage(o, &t.access)
	case s == nil:
		return false
	}
	return t.stageSend(o, s)
}

func (t *stream) stageSend(o *output, s *send) bool {
	begin := o.staged
	var ok bool
	if s.op == verbs.Read {
		ok = t.sends.stageRead(o, s)
	} else {
		ok = t.sends.stageSend(o, s)
	}
	if ok && !s.begun {
		s.begun, s.begin = true, begin
	}
	if s.done {
		t.served.yield = false
	}
	return ok
}

// flush completes every work request: the receive in use and the Read being answered with the
// statuses of h, the others as flushed.
func (t *stream) flush(up Upcalls, h hits) {
	t.receives.flush(up, h.recv)
	t.sends.flush(up, h.read)
}

// dropUnstarted takes back what is staged behind the message that has begun to be written.
func (t *stream) dropUnstarted(o *output) {
	end := o.messageEnd()
	t.served.dropUnstarted(end == o.staged)
	t.sends.dropUnstarted(end)
	o.truncate(end)
}
