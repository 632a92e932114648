package core

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Input processes bytes from the peer, in any fragmentation. It stops at a message that has no
// receive: then Waiting is true, and c uses the rest of b until Resume has processed it or Keep has
// copied it. Otherwise b may be reused afterwards. Do not call Input while Waiting is true.
func (c *Conn) Input(now time.Time, b []byte) {
	c.recheckMemory()
	c.processInput(now, b)
	c.rx.heardAt = now
}

// processInput processes b up to a message that has to wait.
func (c *Conn) processInput(now time.Time, b []byte) {
	r := &c.rx
	for len(b) > 0 && !c.closeNow && !r.wait.message {
		b = c.inputSome(now, b)
	}
	if !r.wait.message {
		b = nil
	}
	if r.rest = b; len(b) == 0 {
		r.owned = 0
	}
}

// inputSome processes some of b and returns the rest.
func (c *Conn) inputSome(now time.Time, b []byte) []byte {
	switch c.state {
	case stRequest, stReply:
		return c.inputFrame(now, b)
	case stAccepted, stOpen, stFinishing:
		switch {
		case c.rx.wait.deaf:
			return nil
		case c.state == stAccepted && c.tx.raw != nil:
			c.closeSetup("receive", "bytes before our Reply was out")
			return nil
		}
		return c.inputFPDU(now, b)
	case stAnswer:
		c.closeSetup("request", "bytes behind the Request, before its Reply")
	case stEnded:
		c.closeNow = !c.shut // an aborted initiator's peer has answered
	case stIdle:
	}
	return nil
}

// recheckMemory checks that the memory into which a segment is received is still registered. It may
// have been freed, or its key invalidated, since the segment's first bytes arrived.
func (c *Conn) recheckMemory() {
	r := &c.rx
	if len(r.dst) == 0 || c.isUsable(r.mr) && (r.h.Opcode != wire.OpWrite || c.cfg.Regions.find(r.h.STag) == r.mr) {
		return
	}
	r.dst = nil
	r.bad = c.freedFault()
}

// inputFPDU processes bytes of one FPDU and returns the rest.
func (c *Conn) inputFPDU(now time.Time, b []byte) []byte {
	r := &c.rx
	switch r.phase {
	case phHead:
		k := copy(r.hdr[r.have:r.need], b)
		r.have += uint8(k)
		if b = b[k:]; r.have == r.need {
			c.headerReceived(now)
		}
	case phPayload:
		k := min(len(b), r.left)
		if len(r.dst) > 0 {
			copy(r.dst, b[:k])
		}
		if c.crc {
			r.crc = wire.UpdateCRC(r.crc, b[:k])
		}
		c.countPlaced(k)
		b = b[k:]
	case phTrailer:
		pad := wire.PadLen(r.ulpdu)
		k := copy(r.trail[r.tail:pad+wire.CRCLen], b)
		r.tail += uint8(k)
		if b = b[k:]; int(r.tail) == pad+wire.CRCLen {
			c.trailerReceived(now, pad)
		}
	}
	return b
}

// countPlaced counts k payload bytes.
func (c *Conn) countPlaced(k int) {
	r := &c.rx
	if r.left -= k; len(r.dst) > 0 {
		r.dst = r.dst[k:]
	}
	if r.left == 0 {
		r.phase = phTrailer
	}
}

// Bulk is true while large messages are arriving. Then the owner should read only little more than
// Rest into other memory than the Landings, so that the next message's payload gets its own
// landing.
func (c *Conn) Bulk() bool { return c.rx.bulk }

// Rest returns how many bytes of the current payload are still to come.
func (c *Conn) Rest() int {
	if c.rx.phase != phPayload {
		return 0
	}
	return c.rx.left
}

// headerReceived processes the needed header bytes: first the control bytes, then the header.
func (c *Conn) headerReceived(now time.Time) {
	r := &c.rx
	var f *fault
	if r.need == headLen {
		if f = c.checkControl(); f == nil {
			return
		}
	} else {
		// the header is complete, and its control bytes were valid
		r.h, _, _ = wire.ConsumeHeader(r.hdr[wire.LengthLen:r.have])
		f = c.checkSegment()
		if r.wait.message || r.wait.deaf {
			return
		}
	}
	r.bad = f
	if f != nil {
		r.dst = nil
		if !c.crc || f.err.Layer == wire.LayerMPA {
			c.failWithTerminate(now, f)
			return
		}
	}
	if c.crc {
		r.crc = wire.UpdateCRC(0, r.hdr[:r.have])
	}
	r.left = wire.LengthLen + r.ulpdu - int(r.have)
	// the small last segment of a large message does not predict the next message
	if r.off == 0 && !r.tag.busy {
		r.bulk = false
	}
	r.bulk = r.bulk || r.left >= LandingMin
	if r.phase = phPayload; r.left == 0 {
		r.phase = phTrailer
	}
}

// checkControl checks the length and the control bytes and sets how many header bytes are needed in
// all.
func (c *Conn) checkControl() *fault {
	r := &c.rx
	r.ulpdu = int(binary.BigEndian.Uint16(r.hdr[:]))
	r.tail, r.dst, r.mr = 0, nil, nil
	if r.ulpdu < wire.CtrlLen {
		return newFault(wire.LayerMPA, 0, 3, fmt.Sprintf("FPDU of %d bytes, too short for any header", r.ulpdu))
	}
	h, _, err := wire.ConsumeCtrl(r.hdr[wire.LengthLen:r.have])
	r.h = h
	if err != nil {
		return wireFault(err)
	}
	n := h.Len()
	if h.Opcode == wire.OpReadRequest {
		n += wire.ReadRequestLen
	}
	if h.Opcode == wire.OpTerminate {
		n += min(max(r.ulpdu-n, 4), wire.MaxTerminateLen)
	}
	if r.ulpdu < n {
		return newFault(wire.LayerMPA, 0, 3, fmt.Sprintf("FPDU of %d bytes, too short for the header of a %v", r.ulpdu, h.Opcode))
	}
	r.need = uint8(wire.LengthLen + n)
	return nil
}

// trailerReceived processes a complete FPDU.
func (c *Conn) trailerReceived(now time.Time, pad int) {
	r := &c.rx
	if c.crc {
		sum := wire.UpdateCRC(r.crc, r.trail[:pad])
		if got := binary.LittleEndian.Uint32(r.trail[pad:]); got != sum {
			f := newFault(wire.LayerMPA, 0, 2, fmt.Sprintf("CRC %#08x, should be %#08x", got, sum))
			f.hitBy(r.h.Opcode, verbs.StatusGeneral)
			c.failWithTerminate(now, f)
			return
		}
	}
	if r.bad != nil {
		c.failWithTerminate(now, r.bad)
		return
	}
	if r.h.Opcode == wire.OpTerminate {
		c.terminateReceived()
		return
	}
	c.noteFPDU()
	if c.state == stEnded { // the upcall has ended the connection
		return
	}
	c.deliverSegment(now)
	r.have, r.need, r.phase = 0, headLen, phHead
}
