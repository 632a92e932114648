package core

import (
	"encoding/binary"
	"time"

	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// iovMax is how many slices one writev takes (UIO_MAXIOV).
const iovMax = 1024

// ctl is a set of FPDUs to send besides the application's.
type ctl uint8

const (
	ctlWrite ctl = 1 << iota // zero-length Write: ready-to-receive, or the kick
	ctlRead                  // zero-length Read Request: ready-to-receive
)

// readResponse is a zero-length Read Response that we owe.
type readResponse struct {
	stag uint32
	to   uint64
}

// tx is the sending side.
type tx struct {
	raw    []byte         // goes first: an MPA frame, or at the end what is left of an FPDU and a Terminate
	batch  *batch         // FPDUs made and not yet taken by the socket; nil: none
	staged uint64         // stream offset behind the batch's last byte
	sent   uint64         // stream offset of the next byte the socket takes
	next   int            // index in sq of the first send not completely staged
	keep   int            // finishing without drain: how many sends are still to go
	msn    uint32         // of the next Send
	reads  []readResponse // owed
	wireAt time.Time      // responder: hold-off ends; initiator: next kick
	kicks  uint8          // kicks armed so far; kicksOver: no more
	ctl    ctl
	held   bool // responder: nothing may be sent yet
	drain  bool // finishing: everything queued still goes
}

// drop forgets what is staged or owed, raw excepted. Work requests are not touched.
func (t *tx) drop() {
	t.batch.release()
	t.batch, t.ctl, t.reads, t.wireAt = nil, 0, nil, time.Time{}
}

// partial is a copy of what must still go out before the stream is at the start of an FPDU again.
func (t *tx) partial() []byte {
	if t.raw != nil {
		return append([]byte(nil), t.raw...)
	}
	if t.batch == nil {
		return nil
	}
	return t.batch.head(t.batch.boundary(t.sent) - t.sent)
}

// Pending is true while Gather has something.
func (c *Conn) Pending() bool {
	if c.closeNow {
		return false
	}
	return c.tx.raw != nil || c.tx.batch != nil || c.sendable()
}

// sendable is true if an FPDU could be staged.
func (c *Conn) sendable() bool {
	live := c.state == stAccepted || c.state == stOpen || c.state == stFinishing
	if !live || c.tx.held || c.tx.raw != nil {
		return false
	}
	return c.tx.ctl != 0 || len(c.tx.reads) > 0 || c.tx.next < c.sendLimit()
}

// sendLimit is how many of the queued sends may go.
func (c *Conn) sendLimit() int {
	if c.state == stFinishing && !c.tx.drain {
		return c.tx.keep
	}
	return c.sq.n
}

// Gather appends to dst the slices to write next, as many as fit cap(dst) (up to 1024 if dst has no room at all).
func (c *Conn) Gather(dst [][]byte) [][]byte { return c.gather(dst, ^uint64(0)) }

// GatherFPDU is Gather up to the end of one FPDU: for a peer with CRC, to whom every FPDU should go in a TCP segment of its own
// (sendmsg with MSG_EOR; see CRC and SetMaxSegment).
func (c *Conn) GatherFPDU(dst [][]byte) [][]byte {
	limit := ^uint64(0)
	if c.stage(); c.tx.batch != nil {
		limit = c.tx.batch.boundary(c.tx.sent+1) - c.tx.sent
	}
	return c.gather(dst, limit)
}

func (c *Conn) gather(dst [][]byte, limit uint64) [][]byte {
	if c.closeNow {
		return dst
	}
	if c.tx.raw != nil {
		return append(dst, c.tx.raw)
	}
	c.stage()
	if c.tx.batch == nil {
		return dst
	}
	room := cap(dst) - len(dst)
	if room == 0 {
		room = iovMax
	}
	for _, p := range c.tx.batch.pending() {
		if room == 0 || limit == 0 {
			break
		}
		if uint64(len(p)) > limit {
			p = p[:limit]
		}
		limit -= uint64(len(p))
		dst = append(dst, p)
		room--
	}
	return dst
}

// stage makes FPDUs of what is queued, as long as the batch has room.
func (c *Conn) stage() {
	for c.sendable() {
		if c.tx.batch == nil {
			c.tx.batch = c.cfg.Pool.get(c.tx.staged)
		}
		if !c.stageOne() {
			return
		}
	}
}

// stageOne makes one FPDU. Only sends are cut into several, and nothing comes between those.
func (c *Conn) stageOne() bool {
	var s *send
	if c.tx.next < c.sendLimit() {
		s = c.sq.at(c.tx.next)
	}
	switch {
	case s != nil && s.begun:
		return c.stageSend(s)
	case c.tx.ctl&ctlWrite != 0:
		h := wire.Header{Tagged: true, Last: true, Opcode: wire.OpWrite, STag: 1}
		if !c.stageFPDU(&h, nil, nil) {
			return false
		}
		c.tx.ctl &^= ctlWrite
	case c.tx.ctl&ctlRead != 0:
		op := wire.OpReadRequest
		h := wire.Header{Last: true, Opcode: op, QN: op.Queue(), MSN: 1}
		if !c.stageFPDU(&h, &wire.ReadRequest{SourceSTag: 1}, nil) {
			return false
		}
		c.tx.ctl &^= ctlRead
	case len(c.tx.reads) > 0:
		r := &c.tx.reads[0]
		h := wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse, STag: r.stag, TO: r.to}
		if !c.stageFPDU(&h, nil, nil) {
			return false
		}
		if c.tx.reads = c.tx.reads[1:]; len(c.tx.reads) == 0 {
			c.tx.reads = nil
		}
	default:
		return c.stageSend(s)
	}
	return true
}

// stageSend makes the next FPDU of s.
func (c *Conn) stageSend(s *send) bool {
	n := min(s.total-s.staged, uint32(c.cfg.MaxSegment))
	h := wire.Header{Last: s.staged+n == s.total, Opcode: sendOpcode(s), MSN: c.tx.msn, MO: s.staged}
	if s.op == verbs.SendWithInvalidate {
		h.STag = s.rkey
	}
	start := c.tx.staged
	p := payload{s: s, n: n}
	if !c.stageFPDU(&h, nil, &p) {
		return false
	}
	if !s.begun {
		s.begun, s.start = true, start
	}
	s.staged += n
	if h.Last {
		s.done, s.end = true, c.tx.staged
		c.tx.msn++
		c.tx.next++
	}
	return true
}

func sendOpcode(s *send) wire.Opcode {
	op := wire.OpSend
	if s.op == verbs.SendWithInvalidate {
		op = wire.OpSendInvalidate
	}
	if s.flags&verbs.Solicited != 0 {
		op += wire.OpSendSE - wire.OpSend
	}
	return op
}

// payload is the next n bytes of a send.
type payload struct {
	s *send
	n uint32
}

// next is a contiguous part of what is left, nil at the end. It moves the send's cursor.
func (p *payload) next() []byte {
	s := p.s
	for p.n > 0 {
		src := s.inline
		if len(s.sgl) > 0 {
			e := &s.sgl[s.piece]
			if s.pieceOff == e.Length {
				s.piece, s.pieceOff = s.piece+1, 0
				continue
			}
			src = e.MR.Bytes[e.Offset : e.Offset+e.Length]
		}
		src = src[s.pieceOff:]
		src = src[:min(uint32(len(src)), p.n)]
		s.pieceOff += uint32(len(src))
		p.n -= uint32(len(src))
		return src
	}
	return nil
}

// stageFPDU adds one FPDU to the batch; false if that has no room.
func (c *Conn) stageFPDU(h *wire.Header, rr *wire.ReadRequest, p *payload) bool {
	b := c.tx.batch
	size, pieces := 0, 0
	if p != nil {
		size, pieces = int(p.n), max(1, len(p.s.sgl))
	}
	if !b.room(size, pieces) {
		return false
	}
	ulpdu := h.Len() + size
	if rr != nil {
		ulpdu += wire.ReadRequestLen
	}
	b.open()
	b.arena = binary.BigEndian.AppendUint16(b.arena, uint16(ulpdu))
	b.arena = wire.AppendHeader(b.arena, h)
	if rr != nil {
		b.arena = wire.AppendReadRequest(b.arena, rr)
	}
	var crc uint32
	if p != nil {
		crc = b.payload(p, size <= copyMax, c.crc)
	}
	for range wire.PadLen(ulpdu) {
		b.arena = append(b.arena, 0)
	}
	if c.crc {
		crc = wire.UpdateCRC(crc, b.arena[b.mark:])
	}
	b.arena = binary.LittleEndian.AppendUint32(b.arena, crc)
	b.flush()
	c.tx.staged += uint64(wire.FPDULen(ulpdu))
	b.ends = append(b.ends, c.tx.staged)
	return true
}

// Advance says that the socket took the first n bytes of what Gather gave.
func (c *Conn) Advance(now time.Time, n int) {
	if c.tx.raw != nil && n > 0 {
		k := min(n, len(c.tx.raw))
		n -= k
		if c.tx.raw = c.tx.raw[k:]; len(c.tx.raw) == 0 {
			c.tx.raw = nil
			c.rawSent(now)
		}
	}
	if n > 0 && c.tx.batch != nil {
		c.tx.sent += c.tx.batch.advance(n)
		c.armKick(now)
		if c.tx.sent == c.tx.staged {
			c.tx.batch.release()
			c.tx.batch = nil
		}
		for c.sq.n > 0 && c.sq.at(0).done && c.sq.at(0).end <= c.tx.sent {
			c.completeSend(verbs.StatusSuccess)
		}
		if c.state == stFinishing && !c.tx.drain && c.tx.keep == 0 {
			c.flushSends()
		}
	}
	c.finDeadline(now)
}

// cutUnstarted takes back what is staged behind the sends that have begun to go out, and flushes all other sends once those are
// complete.
func (c *Conn) cutUnstarted() {
	keep := 0
	for keep < c.sq.n {
		if s := c.sq.at(keep); !s.begun || s.start >= c.tx.sent {
			break
		}
		keep++
	}
	c.tx.keep = keep
	if b := c.tx.batch; b != nil {
		cut := c.tx.staged
		switch {
		case keep == 0:
			cut = b.boundary(c.tx.sent)
		case c.sq.at(keep - 1).done:
			cut = c.sq.at(keep - 1).end
		}
		b.truncate(cut, cut-c.tx.sent)
		c.tx.staged, c.tx.next = cut, min(c.tx.next, keep)
		if cut == c.tx.sent {
			b.release()
			c.tx.batch = nil
		}
	}
	if keep == 0 {
		c.flushSends()
	}
}

const kicksOver = 4

// kickAfter are the pauses before the kicks: 2, 20 and 200 ms after the first FPDU.
var kickAfter = [...]time.Duration{2 * time.Millisecond, 18 * time.Millisecond, 180 * time.Millisecond}

// armKick starts the kick timer with the first FPDU of an initiator. siw's responder can miss an FPDU that comes while it installs
// its receive callback, and looks again when more bytes come.
func (c *Conn) armKick(now time.Time) {
	if c.cfg.Initiator && c.tx.kicks == 0 && c.state == stOpen {
		c.tx.kicks = 1
		c.tx.wireAt = now.Add(kickAfter[0])
	}
}

// wireTimeout ends the hold-off, or kicks.
func (c *Conn) wireTimeout(now time.Time) {
	c.tx.wireAt = time.Time{}
	if !c.cfg.Initiator {
		c.tx.held = false
		return
	}
	c.tx.ctl |= ctlWrite
	if int(c.tx.kicks) < len(kickAfter) {
		c.tx.wireAt = now.Add(kickAfter[c.tx.kicks])
	}
	c.tx.kicks++
}

// heard is called with every FPDU that was right: the peer is up.
func (c *Conn) heard() {
	if c.cfg.Initiator {
		if c.tx.kicks != kicksOver {
			if c.tx.kicks > 0 {
				c.tx.ctl &^= ctlWrite
			}
			c.tx.kicks, c.tx.wireAt = kicksOver, time.Time{}
		}
		return
	}
	if c.tx.held {
		c.tx.held, c.tx.wireAt = false, time.Time{}
	}
	if c.state == stAccepted {
		c.establish(nil)
	}
}
