package iwarp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/pcapng"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// ackEvery is the number of bytes in one direction after which a separate acknowledgement is
// generated. Others travel with data. It is far below the window that packets announce.
const ackEvery = 1 << 20

// tap is a connection's part in a capture. It belongs to the connection.
type tap struct {
	capture *Capture
	endpoints
	decided bool // whether the capture includes this connection is decided
	chosen  bool // the capture includes it
	named   bool // a comment has named the identifier
	in, out stream
	pieces  [][]byte // scratch
}

// stream is one direction of a captured connection.
type stream struct {
	next  uint32 // sequence number of its next byte
	acked uint32 // sequence number up to which the other side has acknowledged it
	skip  int    // bytes to omit before it continues; negative: all
	gap   bool   // bytes were dropped: bytes that are omitted afterwards are counted, too
	lost  bool   // bytes were just dropped: the position to continue must be determined
	over  bool   // it has ended
}

// currentTap returns c's part in the device's capture; nil if there is none. It is called for each
// read and write, so it is inlined.
func (c *conn) currentTap() *tap {
	if c.in.drv.capture.Load() == nil {
		return nil
	}
	return c.tapOf()
}

// tapOf is currentTap for a device with a capture. It decides once whether this includes c, but
// waits until there is room for c's beginning, without which the rest could not be decoded.
func (c *conn) tapOf() *tap {
	p := c.in.drv.capture.Load()
	if p == nil { // it has just ended
		return nil
	}
	if c.tap == nil || c.tap.capture != p {
		c.tap = &tap{capture: p, endpoints: c.endpointAddrs()}
	}
	if !c.tap.decided {
		c.tap.beginConn(c)
	}
	if !c.tap.chosen {
		return nil
	}
	return c.tap
}

// endpointAddrs returns c's addresses. They are not valid if its identifier, which knows them, is
// gone.
func (c *conn) endpointAddrs() endpoints {
	switch {
	case c.arriving != nil:
		return endpoints{addrPort(c.arriving.local), addrPort(c.arriving.peer)}
	case c.id != nil:
		return endpoints{addrPort(c.id.local), addrPort(c.id.peer)}
	}
	return endpoints{}
}

// beginConn decides whether the capture includes c, and generates c's beginning.
func (t *tap) beginConn(c *conn) {
	if !t.local.Addr().IsValid() || !t.peer.Addr().IsValid() || !t.capture.includesConn(t.endpoints) {
		t.decided = true
		return
	}
	n, full := t.capture.addConn(t.endpoints)
	t.decided, t.chosen = !full, n > 0
	if !t.chosen {
		return
	}
	// so that consecutive connections between the same addresses differ
	t.out.next, t.in.next = uint32(n)*1_000_003, uint32(n)*1_000_003+1<<30
	initiator, responder := &t.in, &t.out
	if c.initiator {
		initiator, responder = &t.out, &t.in
	}
	t.addFlags(c, initiator, pcapng.SYN)
	initiator.next++
	t.addFlags(c, responder, pcapng.SYN|pcapng.ACK)
	responder.next++
	t.addFlags(c, initiator, pcapng.ACK)

	in, out := c.core.InputPosition(), c.core.OutputPosition()
	heard := c.came > uint64(len(in.Head)) // more was read than the part of an MPA frame in Head
	for _, s := range [...]*stream{initiator, responder} {
		if s == &t.in && heard || s == &t.out && c.went > 0 {
			t.makeUp(c, s, s == responder)
		}
	}
	if c.went > 0 {
		t.out.skip = out.Rest
	}
	t.goOn(c, &t.in, in)
}

// makeUp adds a synthetic MPA Request or Reply in place of one that was not captured.
func (t *tap) makeUp(c *conn, s *stream, reply bool) {
	f := wire.Frame{Reply: reply, Revision: 1}
	if c.core.CRC() {
		f.Flags |= wire.FlagCRC
	}
	t.addSegment(c, s, wire.FrameLen, "made up, because the capture has begun later than the connection", wire.AppendFrame(nil, &f))
}

// goOn continues s at a position in the connection's bytes.
func (t *tap) goOn(c *conn, s *stream, at core.Position) {
	s.skip = at.Rest
	if len(at.Head) == 0 {
		return
	}
	if s.gap { // these bytes were counted when they were dropped
		s.next -= uint32(len(at.Head))
	}
	t.addSegment(c, s, len(at.Head), "", at.Head)
}

// addRead adds n bytes that were read from the socket into bufs, before the core has seen them.
func (t *tap) addRead(c *conn, n int, bufs [][]byte) {
	if t.in.lost {
		t.in.lost = false
		t.goOn(c, &t.in, c.core.InputPosition())
	}
	t.addData(c, &t.in, n, bufs)
}

// addWritten adds the first n bytes of bufs, which were written to the socket, before the core
// knows.
func (t *tap) addWritten(c *conn, n int, bufs [][]byte) {
	if t.out.lost {
		t.out.lost = false
		t.goOn(c, &t.out, c.core.OutputPosition())
	}
	t.addData(c, &t.out, n, bufs)
}

// addData adds the first n bytes of bufs without omitted ones.
func (t *tap) addData(c *conn, s *stream, n int, bufs [][]byte) {
	from := cursor{bufs: bufs}
	if left := s.leftOut(n); left > 0 {
		t.pieces = from.next(left, t.pieces[:0])
		n -= left
	}
	for n > 0 {
		k := min(n, pcapng.MaxPayload)
		t.pieces = from.next(k, t.pieces[:0])
		n -= k
		if !t.addSegment(c, s, k, "", t.pieces...) {
			s.lost, s.gap = true, true
			s.next += uint32(n)
			break
		}
	}
	clear(t.pieces)
}

// leftOut returns how many of the next n bytes are omitted.
func (s *stream) leftOut(n int) int {
	if s.skip >= 0 {
		n = min(n, s.skip)
		s.skip -= n
	}
	if s.gap {
		s.next += uint32(n)
	}
	return n
}

// cursor reads bytes that are in pieces.
type cursor struct {
	bufs [][]byte
	at   int // in bufs[0]
}

// next appends the next n bytes to dst, as pieces.
func (r *cursor) next(n int, dst [][]byte) [][]byte {
	for n > 0 {
		p := r.bufs[0][r.at:]
		if len(p) > n {
			p = p[:n]
			r.at += n
		} else {
			r.bufs, r.at = r.bufs[1:], 0
		}
		n -= len(p)
		dst = append(dst, p)
	}
	return dst
}

// addSegment adds a segment with n bytes. The result is false if it was dropped.
func (t *tap) addSegment(c *conn, s *stream, n int, comment string, payload ...[]byte) bool {
	ok := t.addPacket(c, s, pcapng.PSH|pcapng.ACK, n, comment, payload)
	s.next += uint32(n)
	if s.next-s.acked >= ackEvery {
		t.addFlags(c, t.otherDirection(s), pcapng.ACK)
	}
	return ok
}

// addFlags adds a segment without payload.
func (t *tap) addFlags(c *conn, s *stream, flags pcapng.Flags) { t.addPacket(c, s, flags, 0, "", nil) }

// addPacket adds a packet to the capture.
func (t *tap) addPacket(c *conn, s *stream, flags pcapng.Flags, n int, comment string, payload [][]byte) bool {
	o := t.otherDirection(s)
	p := pcapng.Packet{Time: time.Now(), Inbound: s == &t.in, Comment: comment, Segment: pcapng.Segment{
		From: t.local, To: t.peer, Seq: s.next, Flags: flags,
	}}
	if p.Inbound {
		p.From, p.To = p.To, p.From
	}
	if flags&pcapng.ACK != 0 {
		p.Ack, o.acked = o.next, o.next
	}
	naming := !t.named && c.id != nil
	if naming {
		p.Comment = fmt.Sprintf("rdma_cm_id %d", c.id.h)
		if comment != "" {
			p.Comment += "; " + comment
		}
	}
	ok := t.capture.addPacket(&p, n, payload)
	t.named = t.named || naming && ok
	return ok
}

// otherDirection returns the other direction.
func (t *tap) otherDirection(s *stream) *stream {
	if s == &t.in {
		return &t.out
	}
	return &t.in
}

// addEnd adds the end of a direction: the peer's if in is true. It is a FIN, or with a reset both
// directions end.
func (t *tap) addEnd(c *conn, in, reset bool) {
	s := &t.out
	if in {
		s = &t.in
	}
	o := t.otherDirection(s)
	switch {
	case s.over:
	case reset:
		s.over, o.over = true, true
		t.addFlags(c, s, pcapng.RST|pcapng.ACK)
	default:
		s.over = true
		t.addFlags(c, s, pcapng.FIN|pcapng.ACK)
		if s.next++; o.over {
			t.addFlags(c, o, pcapng.ACK)
		}
	}
}

// captureEnd adds the end of the peer's stream: a FIN (nil), or an error of the socket.
func (c *conn) captureEnd(err error) {
	if t := c.currentTap(); t != nil && (err == nil || err == unix.ECONNRESET) {
		t.addEnd(c, true, err != nil)
	}
}

// captureClose adds the effect of closing the socket, and ends c's part in a capture.
func (c *conn) captureClose(reset bool) {
	if c.tap == nil {
		return
	}
	if t := c.tap; t.chosen {
		t.addEnd(c, false, reset)
		t.capture.removeConn(t.endpoints)
	}
	c.tap = nil
}
