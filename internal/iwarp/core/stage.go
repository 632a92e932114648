package core

import (
	"encoding/binary"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// stageFPDUs makes FPDUs of the queued messages, as long as the batch has room. With CRC it makes
// at most one TCP segment, and nothing in advance: memory that a peer reads may change until the
// socket has taken it, and then the CRC would be wrong.
func (c *Conn) stageFPDUs() {
	if c.crc && c.tx.batch != nil {
		return
	}
	for c.canStage() {
		if c.tx.batch == nil {
			c.tx.batch = c.cfg.Pool.get(c.tx.staged, !c.tx.within)
		}
		if !c.stageOne() {
			break
		}
	}
	// a Read Response whose memory is gone was all there was
	if b := c.tx.batch; b != nil && len(b.ends) == 1 {
		b.release()
		c.tx.batch = nil
	}
}

// stageOne makes one FPDU. A message of several FPDUs is not interrupted. Read Responses and sends
// take turns.
func (c *Conn) stageOne() bool {
	t := &c.tx
	s := c.nextSend()
	switch {
	case t.owed.Len() > 0 && t.owed.At(0).staged > 0:
		return c.stageResponse()
	case s != nil && s.begun:
		return c.stageSend(s)
	case t.ctl&ctlWrite != 0:
		h := wire.Header{Tagged: true, Last: true, Opcode: wire.OpWrite, STag: 1}
		if !c.stageFPDU(&h, nil, payload{}) {
			return false
		}
		t.ctl &^= ctlWrite
	case t.ctl&ctlRead != 0:
		if !c.stageReadRequest(&wire.ReadRequest{SourceSTag: 1}) {
			return false
		}
		t.ctl &^= ctlRead
	case t.owed.Len() > 0 && (s == nil || !t.sendDue):
		return c.stageResponse()
	case s.op == verbs.Read:
		return c.stageRead(s)
	default:
		return c.stageSend(s)
	}
	return true
}

// stageSend makes the next FPDU of a Send or a Write.
func (c *Conn) stageSend(s *send) bool {
	n := min(s.total-s.staged, uint32(c.cfg.MaxSegment))
	h := wire.Header{Last: s.staged+n == s.total}
	if s.op == verbs.Write {
		h.Tagged, h.Opcode, h.STag, h.TO = true, wire.OpWrite, s.rkey, s.raddr+uint64(s.staged)
	} else {
		h.Opcode, h.MSN, h.MO = sendOpcode(s), c.tx.msn, s.staged
		if s.op == verbs.SendWithInvalidate {
			h.STag = s.rkey
		}
	}
	start := c.tx.staged
	if !c.stageFPDU(&h, nil, payload{s: s, n: n}) {
		return false
	}
	if !s.begun {
		s.begun, s.start = true, start
	}
	s.staged += n
	if h.Last {
		c.recordStaged(s)
		if s.op != verbs.Write {
			c.tx.msn++
		}
	}
	return true
}

// stageRead makes the Read Request of s.
func (c *Conn) stageRead(s *send) bool {
	start := c.tx.staged
	q := wire.ReadRequest{Size: s.total, SourceSTag: s.rkey, SourceTO: s.raddr}
	q.SinkSTag, q.SinkTO = s.readSink()
	if !c.stageReadRequest(&q) {
		return false
	}
	if c.tx.readsOut == 0 {
		c.tx.oldRead = c.tx.next
	}
	c.tx.readsOut++
	s.begun, s.start = true, start
	c.recordStaged(s)
	return true
}

// recordStaged records that the last FPDU of s is made.
func (c *Conn) recordStaged(s *send) {
	s.done, s.end = true, c.tx.staged
	c.tx.next++
	c.tx.sendDue = false
}

func (c *Conn) stageReadRequest(q *wire.ReadRequest) bool {
	op := wire.OpReadRequest
	h := wire.Header{Last: true, Opcode: op, QN: op.Queue(), MSN: c.tx.readMSN}
	if !c.stageFPDU(&h, q, payload{}) {
		return false
	}
	c.tx.readMSN++
	return true
}

// stageResponse makes the next FPDU of the oldest Read Response.
func (c *Conn) stageResponse() bool {
	r := c.tx.owed.At(0)
	n := min(r.size-r.staged, uint32(c.cfg.MaxSegment))
	h := wire.Header{
		Tagged: true, Last: r.staged+n == r.size, Opcode: wire.OpReadResponse, STag: r.stag, TO: r.to + uint64(r.staged),
	}
	var p payload
	if r.source != nil {
		if c.cfg.Regions.find(r.source.RKey) != r.source {
			c.tx.lost = newFault(wire.LayerRDMAP, wire.RDMAPProtection, 0, "the region that the peer reads is gone")
			return false
		}
		from := r.offset + r.staged
		p = payload{one: r.source.Bytes[from : from+n], n: n}
	}
	if !c.stageFPDU(&h, nil, p) {
		return false
	}
	r.staged += n
	if h.Last {
		c.tx.owed.Pop()
		c.tx.sendDue = true
	}
	return true
}

// Overhead is the most that an FPDU adds to its payload, except for the pad: length, the longer
// header, CRC.
const Overhead = wire.LengthLen + wire.UntaggedLen + wire.CRCLen

// stageFPDU adds one FPDU to the batch. The result is false if the batch has no room.
func (c *Conn) stageFPDU(h *wire.Header, rr *wire.ReadRequest, p payload) bool {
	b := c.tx.batch
	size := int(p.n)
	if !b.hasRoom(size, p.maxPieces()) {
		return false
	}
	ulpdu := h.Len() + size
	if rr != nil {
		ulpdu += wire.ReadRequestLen
	}
	begin := b.ends[0]
	if c.crc && c.tx.staged > begin && c.tx.staged-begin+uint64(wire.FPDULen(ulpdu)) > uint64(c.cfg.MaxSegment+Overhead) {
		return false
	}
	b.beginFPDU()
	b.arena = binary.BigEndian.AppendUint16(b.arena, uint16(ulpdu))
	b.arena = wire.AppendHeader(b.arena, h)
	if rr != nil {
		b.arena = wire.AppendReadRequest(b.arena, rr)
	}
	var crc uint32
	if size > 0 {
		crc = b.addPayload(&p, size <= copyMax, c.crc)
	}
	for range wire.PadLen(ulpdu) {
		b.arena = append(b.arena, 0)
	}
	if c.crc {
		crc = wire.UpdateCRC(crc, b.arena[b.mark:])
	}
	b.arena = binary.LittleEndian.AppendUint32(b.arena, crc)
	b.flushArena()
	c.tx.staged += uint64(wire.FPDULen(ulpdu))
	b.endFPDU(c.tx.staged, h.Last)
	c.tx.within = !h.Last
	return true
}

// canStage reports whether an FPDU could be staged.
func (c *Conn) canStage() bool {
	live := c.state == stAccepted || c.state == stOpen || c.state == stFinishing
	if !live || c.tx.waits || c.tx.raw != nil || c.tx.lost != nil {
		return false
	}
	return c.tx.ctl != 0 || c.tx.owed.Len() > 0 || c.nextSend() != nil
}

// nextSend returns the send whose FPDU may be made next, or nil. A Read waits while as many Reads
// are outstanding as the peer serves at a time. A fenced work request waits until none is
// outstanding. The sends behind a waiting one wait too.
func (c *Conn) nextSend() *send {
	if c.tx.next >= c.sendLimit() {
		return nil
	}
	s := c.sq.At(c.tx.next)
	out := c.readsPending()
	if out == 0 || s.begun || s.flags&verbs.Fence == 0 && (s.op != verbs.Read || out < int(c.ord)) {
		return s
	}
	return nil
}

// readsPending returns how many of our Reads the peer has not answered.
func (c *Conn) readsPending() int {
	if c.rx.rtrOut {
		return c.tx.readsOut + 1
	}
	return c.tx.readsOut
}

// sendLimit returns how many of the queued sends may be sent.
func (c *Conn) sendLimit() int {
	if c.state == stFinishing {
		return c.tx.keep
	}
	return c.sq.Len()
}
