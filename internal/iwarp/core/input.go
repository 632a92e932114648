package core

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// inputPhase is the part of an FPDU that comes next.
type inputPhase uint8

const (
	phHead    inputPhase = iota // length and headers
	phPayload                   // payload, to input.dst or nowhere
	phTrailer                   // pad and CRC
)

// input is MPA's receiving side, one FPDU at a time.
//
// If a message finds a shared receive queue empty whose owner can be asked for a receive
// (RecvSource.WaitsIfEmpty), it waits, and Input returns. Its header has been read. Resume goes on
// when the owner of the Conn has asked. The owner of the queue may have no memory now, which is not
// the peer's fault. So nothing more is read from the socket until Resume finds a receive, and TCP
// stops the peer. Time-outs for silence and set-up do not run until then, because it is this side
// that does not read.
//
// Pause makes the next message wait although there are receives, because the owner reserves them
// for other connections.
type input struct {
	seg   segment
	trail [3 + wire.CRCLen]byte
	tail  uint8 // bytes in trail
	phase inputPhase
	crc   bool // CRC in use
	bulk  bool // a segment of the last message was large
	waits bool // a message waits for a receive
	deaf  bool // this side sends nothing more, and nothing that comes would be processed

	left  int    // bytes of the ULPDU still to come
	dst   []byte // where they go; shorter than left: nowhere
	mr    *verbs.MR
	sum   uint32 // CRC so far
	owned uint32 // bytes of rest's memory that Keep has allocated; 0: rest is the caller's
	bad   *fault // the segment's error, reported when its CRC proves right

	rest    []byte        // bytes read behind the message that waits
	heardAt time.Time     // when bytes last came, if a message is half here
	timeout time.Duration // for the next bytes of a message
}

// consume takes bytes of one FPDU and returns the rest. done is true if all that head or trailer
// needs is here.
func (in *input) consume(b []byte) (rest []byte, done bool) {
	s := &in.seg
	switch in.phase {
	case phHead:
		if b = b[s.fill(b):]; s.have == headLen {
			if in.bad = s.parseControl(); in.bad == nil {
				b = b[s.fill(b):]
			}
		}
		return b, in.bad != nil || s.have == s.need
	case phPayload:
		k := min(len(b), in.left)
		if len(in.dst) > 0 {
			copy(in.dst, b[:k])
		}
		in.countPlaced(b[:k])
		if b = b[k:]; in.phase == phPayload {
			return b, false
		}
	case phTrailer:
	}
	end := s.trailerLen()
	k := copy(in.trail[in.tail:end], b)
	in.tail += uint8(k)
	return b[k:], int(in.tail) == end
}

// countPlaced counts payload bytes that are where they belong.
func (in *input) countPlaced(p []byte) {
	if in.crc {
		in.sum = wire.UpdateCRC(in.sum, p)
	}
	if in.left -= len(p); len(in.dst) > 0 {
		in.dst = in.dst[len(p):]
	}
	if in.left == 0 {
		in.phase = phTrailer
	}
}

// beginPayload goes on behind a segment's headers. first is true if it is its message's first.
func (in *input) beginPayload(first bool) {
	s := &in.seg
	if in.crc {
		in.sum = wire.UpdateCRC(0, s.raw[:s.have])
	}
	in.tail, in.left = 0, s.left()
	if first { // the small last segment of a large message does not predict the next message
		in.bulk = false
	}
	in.bulk = in.bulk || in.left >= LandingMin
	if in.phase = phPayload; in.left == 0 {
		in.phase = phTrailer
	}
}

// checkTrailer returns what is wrong with a complete FPDU.
func (in *input) checkTrailer() *fault {
	if in.crc {
		pad := in.seg.trailerLen() - wire.CRCLen
		sum := wire.UpdateCRC(in.sum, in.trail[:pad])
		if got := binary.LittleEndian.Uint32(in.trail[pad:]); got != sum {
			f := newFault(wire.LayerMPA, 0, 2, fmt.Sprintf("CRC %#08x, should be %#08x", got, sum))
			f.hitBy(in.seg.h.Opcode, verbs.StatusGeneral)
			return f
		}
	}
	return in.bad
}

// recheckMemory checks that the memory into which a segment is received is still registered. It may
// have been freed, or its key invalidated, since the segment's first bytes arrived.
func (in *input) recheckMemory(a *access) {
	h := &in.seg.h
	if len(in.dst) == 0 || a.isUsable(in.mr) && (h.Opcode != wire.OpWrite || a.regions.find(h.STag) == in.mr) {
		return
	}
	in.dst = nil
	in.bad = freedFault(h)
}

// beginFPDU expects the next FPDU.
func (in *input) beginFPDU() { in.seg.have, in.seg.need, in.phase = 0, headLen, phHead }

// drop drops what waits, and the memory of the segment.
func (in *input) drop() {
	in.dst, in.mr, in.bad = nil, nil, nil
	in.waits, in.deaf, in.rest, in.owned = false, false, nil, 0
}

// discard drops all input up to the peer's FIN.
func (in *input) discard() {
	in.waits, in.deaf, in.rest, in.owned = false, true, nil, 0
	in.beginFPDU()
}

// Input processes bytes from the peer, in any fragmentation. It stops at a message that has no
// receive: then Waiting is true, and c uses the rest of b until Resume has processed it or Keep has
// copied it. Otherwise b may be reused afterwards. Do not call Input while Waiting is true.
func (c *Conn) Input(now time.Time, b []byte) {
	c.in.recheckMemory(&c.stream.access)
	c.processInput(now, b)
	c.in.heardAt = now
}

// processInput processes b up to a message that has to wait.
func (c *Conn) processInput(now time.Time, b []byte) {
	in := &c.in
	for len(b) > 0 && !c.closeNow && !in.waits {
		b = c.inputSome(now, b)
	}
	if !in.waits {
		b = nil
	}
	if in.rest = b; len(b) == 0 {
		in.owned = 0
	}
}

// inputSome processes some of b and returns the rest.
func (c *Conn) inputSome(now time.Time, b []byte) []byte {
	switch c.state {
	case stRequest, stReply:
		return c.inputFrame(now, b)
	case stAccepted, stOpen, stFinishing:
		switch {
		case c.in.deaf:
			return nil
		case c.state == stAccepted && c.out.raw != nil:
			c.closeSetup("receive", "bytes before our Reply was out")
			return nil
		}
		b, done := c.in.consume(b)
		switch {
		case !done:
		case c.in.phase == phHead:
			c.headerReceived(now)
		default:
			c.fpduReceived(now)
		}
		return b
	case stAnswer:
		c.closeSetup("request", "bytes behind the Request, before its Reply")
	case stEnded:
		c.closeNow = !c.shut // an aborted initiator's peer has answered
	case stIdle:
	}
	return nil
}

// headerReceived processes a complete header, or wrong control bytes.
func (c *Conn) headerReceived(now time.Time) {
	in, s := &c.in, &c.in.seg
	if in.bad == nil {
		s.parseHeader()
		if c.stream.receives.mustWait(s) {
			in.waits = true
			c.noteFPDU()
			return
		}
		in.dst, in.mr, in.bad = c.stream.place(s, c.out.sent)
	}
	if f := in.bad; f != nil {
		in.dst = nil
		if !in.crc || f.err.Layer == wire.LayerMPA {
			c.failWithTerminate(now, f)
			return
		}
	}
	in.beginPayload(c.stream.isFirst())
}

// fpduReceived processes a complete FPDU.
func (c *Conn) fpduReceived(now time.Time) {
	s := &c.in.seg
	f := c.in.checkTrailer()
	if f == nil {
		if s.h.Opcode == wire.OpTerminate {
			t := s.terminate()
			c.closeSocket()
			c.closeProtocol(&Error{
				Op: "receive", Protocol: true, Received: true, Errno: unix.ECONNRESET, Text: "ended by the peer",
				Layer: t.Layer, Type: t.Type, Code: t.Code,
			})
			return
		}
		c.noteFPDU()
		if c.state == stEnded { // the upcall has ended the connection
			return
		}
		f = c.stream.deliver(s, c.out.sent, c.up)
	}
	if f != nil {
		c.failWithTerminate(now, f)
		return
	}
	c.in.beginFPDU()
}

// noteFPDU notes that a correct FPDU has arrived, which shows that the peer works. It may establish
// the connection.
func (c *Conn) noteFPDU() {
	c.pacing.noteFPDU()
	if c.state == stAccepted {
		c.reportEstablished(nil)
	}
}

// Bulk is true while large messages are arriving. Then the owner should read only little more than
// Rest into other memory than the Landings, so that the next message's payload gets its own
// landing.
func (c *Conn) Bulk() bool { return c.in.bulk }

// Rest returns how many bytes of the current payload are still to come.
func (c *Conn) Rest() int {
	if c.in.phase != phPayload {
		return 0
	}
	return c.in.left
}
