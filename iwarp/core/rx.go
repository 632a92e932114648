package core

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// phase is the part of an FPDU that comes next.
type phase uint8

const (
	phHead    phase = iota // length and headers
	phPayload              // payload, to rx.dst or nowhere
	phTrailer              // pad and CRC
)

// rx is the receiving side: one FPDU at a time, in one message at a time.
type rx struct {
	hdr     [wire.LengthLen + wire.UntaggedLen + wire.MaxTerminateLen]byte // length, headers, Read Request or Terminate payload
	trail   [3 + wire.CRCLen]byte
	have    uint8 // bytes in hdr
	need    uint8 // bytes wanted there
	tail    uint8 // bytes in trail
	phase   phase
	taken   bool // recv is in use: a Send is in progress
	rtrOut  bool // the answer to our ready-to-receive Read is outstanding
	bulk    bool // a segment of the last message was large
	wait    waiting
	orphans int32 // Read Responses under way whose Reads were flushed

	h     wire.Header
	ulpdu int    // the FPDU's length field
	seg   uint32 // payload bytes of the segment
	left  int    // bytes of the ULPDU still to come
	dst   []byte // where they go; shorter than left: nowhere
	mr    *verbs.MR
	crc   uint32
	bad   *fault // what is wrong with the segment, told when its CRC proves right

	recv    verbs.RecvWR
	off     uint32 // bytes of the message so far: the next MO
	op      wire.Opcode
	msn     uint32 // of the Send that is next or in progress
	readMSN uint32 // of the next Read Request
	tag     tagged
	heardAt time.Time // when bytes last came, if a message is half here
	kept    *kept     // nil: nothing
}

// tagged is the Write or Read Response in progress, between two of its segments.
type tagged struct {
	op   wire.Opcode
	busy bool
	stag uint32
	next uint64 // TO
}

// orphan says that the next n Read Responses find no Read any more: their memory is the owner's again.
func (r *rx) orphan(n int) {
	r.orphans += int32(n)
	if r.h.Opcode == wire.OpReadResponse {
		r.dst = nil
	}
}

// busy is true in the middle of a message.
func (r *rx) busy() bool { return r.have > 0 || r.taken || r.tag.busy }

// Input takes bytes from the peer, in any fragmentation. b may be reused afterwards.
func (c *Conn) Input(now time.Time, b []byte) {
	c.recheck()
	for len(b) > 0 && !c.closeNow {
		if c.rx.wait.message {
			c.rx.keep(b)
			break
		}
		b = c.inputSome(now, b)
	}
	c.rx.heardAt = now
}

// inputSome takes some of b and gives back the rest.
func (c *Conn) inputSome(now time.Time, b []byte) []byte {
	switch c.state {
	case stRequest, stReply:
		return c.inputFrame(now, b)
	case stAccepted, stOpen, stFinishing:
		switch {
		case c.rx.wait.deaf:
			return nil
		case c.state == stAccepted && c.tx.raw != nil:
			c.drop("receive", "bytes before our Reply was out")
			return nil
		}
		return c.inputFPDU(now, b)
	case stAnswer:
		c.drop("request", "bytes behind the Request, before its Reply")
	case stEnded:
		c.closeNow = !c.shut // an aborted initiator's peer has answered
	case stIdle:
	}
	return nil
}

// recheck looks whether the memory that a segment goes to is still registered: it may have been freed, or its key taken back, since
// the first bytes came.
func (c *Conn) recheck() {
	r := &c.rx
	if len(r.dst) == 0 || c.usable(r.mr) && (r.h.Opcode != wire.OpWrite || c.cfg.Regions.find(r.h.STag) == r.mr) {
		return
	}
	r.dst = nil
	r.bad = c.vanished()
}

// inputFPDU takes bytes of one FPDU and gives back the rest.
func (c *Conn) inputFPDU(now time.Time, b []byte) []byte {
	r := &c.rx
	switch r.phase {
	case phHead:
		k := copy(r.hdr[r.have:r.need], b)
		r.have += uint8(k)
		if b = b[k:]; r.have == r.need {
			c.head(now)
		}
	case phPayload:
		k := min(len(b), r.left)
		if len(r.dst) > 0 {
			copy(r.dst, b[:k])
		}
		if c.crc {
			r.crc = wire.UpdateCRC(r.crc, b[:k])
		}
		c.placed(k)
		b = b[k:]
	case phTrailer:
		pad := wire.PadLen(r.ulpdu)
		k := copy(r.trail[r.tail:pad+wire.CRCLen], b)
		r.tail += uint8(k)
		if b = b[k:]; int(r.tail) == pad+wire.CRCLen {
			c.trailer(now, pad)
		}
	}
	return b
}

// placed counts k payload bytes.
func (c *Conn) placed(k int) {
	r := &c.rx
	if r.left -= k; len(r.dst) > 0 {
		r.dst = r.dst[k:]
	}
	if r.left == 0 {
		r.phase = phTrailer
	}
}

// Bulk is true while the messages that come are large: read little more at a time than Rest besides
// Landings, so that the next one's payload gets one.
func (c *Conn) Bulk() bool { return c.rx.bulk }

// Rest is how many bytes are still to come of the payload that has begun to.
func (c *Conn) Rest() int {
	if c.rx.phase != phPayload {
		return 0
	}
	return c.rx.left
}

// head is called when as many header bytes are here as were asked for: first the control bytes, then all.
func (c *Conn) head(now time.Time) {
	r := &c.rx
	var f *fault
	if r.need == headLen {
		if f = c.control(); f == nil {
			return
		}
	} else {
		r.h, _, _ = wire.ConsumeHeader(r.hdr[wire.LengthLen:r.have]) // its control bytes were right, and it is complete
		f = c.segment()
		if r.wait.message || r.wait.deaf {
			return
		}
	}
	r.bad = f
	if f != nil {
		r.dst = nil
		if !c.crc || f.err.Layer == wire.LayerMPA {
			c.fail(now, f)
			return
		}
	}
	if c.crc {
		r.crc = wire.UpdateCRC(0, r.hdr[:r.have])
	}
	r.left = wire.LengthLen + r.ulpdu - int(r.have)
	if r.off == 0 && !r.tag.busy { // the small end of a large message says nothing of the next one
		r.bulk = false
	}
	r.bulk = r.bulk || r.left >= LandingMin
	if r.phase = phPayload; r.left == 0 {
		r.phase = phTrailer
	}
}

// control looks at length and control bytes and asks for the rest of the headers.
func (c *Conn) control() *fault {
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

// trailer is called when the FPDU is complete.
func (c *Conn) trailer(now time.Time, pad int) {
	r := &c.rx
	if c.crc {
		sum := wire.UpdateCRC(r.crc, r.trail[:pad])
		if got := binary.LittleEndian.Uint32(r.trail[pad:]); got != sum {
			f := newFault(wire.LayerMPA, 0, 2, fmt.Sprintf("CRC %#08x, should be %#08x", got, sum))
			f.hitBy(r.h.Opcode, verbs.StatusGeneral)
			c.fail(now, f)
			return
		}
	}
	if r.bad != nil {
		c.fail(now, r.bad)
		return
	}
	if r.h.Opcode == wire.OpTerminate {
		c.terminated()
		return
	}
	c.heard()
	if c.state == stEnded { // by the upcall
		return
	}
	c.deliver(now)
	r.have, r.need, r.phase = 0, headLen, phHead
}
