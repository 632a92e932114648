package core

import (
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

const (
	// SpillLen is how many bytes of scratch memory Conn.Landed needs, for when the stream was not
	// as predicted.
	SpillLen = 256 << 10
	// aheadMax bounds the payload bytes that are predicted. Together with the headers between them
	// they fit into SpillLen.
	aheadMax = SpillLen - 4096
)

// Landings appends to dst the memory for the next bytes of the stream, if these are the rest of a
// large payload. First comes the memory for that rest. Then parts of stage (for headers) alternate
// with the memory for the payloads that are predicted to follow. One readv reads all of that from
// the socket to its place. Landed reports afterwards how much came. Between two large segments of a
// Send the first payload is empty. Landings appends nothing when the next bytes must go to Input.
// The last part of stage takes what follows everything predicted. Keep stage small (256 bytes), so
// that the next message's payload gets a separate landing. The result is valid until the next call
// into c.
//
// The prediction is that the message goes on in segments of the same size, to memory that this
// side has chosen (a receive, the sink of a Read). Writes are not predicted: their length is not
// known, and memory behind their end must not change.
func (c *Conn) Landings(dst [][]byte, stage []byte) [][]byte {
	r := &c.rx
	if c.closeNow {
		return dst
	}
	head := wire.LengthLen + r.h.Len()
	trailer := wire.PadLen(r.ulpdu) + wire.CRCLen
	between := head
	var rest []byte
	switch {
	case r.phase == phPayload && len(r.dst) >= LandingMin:
		if c.recheckMemory(); r.dst == nil {
			return dst
		}
		dst, rest, between = append(dst, r.dst), c.restOfMessage(), trailer+head
	case r.phase == phHead && r.have == 0 && r.taken && r.h.Opcode.Send() && c.isUsable(r.recv.SGE.MR):
		if rest = c.restOfMessage(); len(rest) < LandingMin {
			return dst
		}
		dst = append(dst, nil)
	default:
		return dst
	}
	for n := 0; len(rest) >= LandingMin; {
		p := rest[:min(len(rest), int(r.seg))]
		if n += len(p); n > aheadMax || len(stage) < 2*between || cap(dst)-len(dst) < 3 {
			break
		}
		dst = append(dst, stage[:between:between], p)
		stage, rest, between = stage[between:], rest[len(p):], trailer+head
	}
	return append(dst, stage)
}

// restOfMessage returns the memory behind the segment that is arriving, or has arrived.
func (c *Conn) restOfMessage() []byte {
	r := &c.rx
	switch {
	case r.h.Last || r.seg < LandingMin:
		return nil
	case r.h.Opcode.Send():
		off := r.off
		if r.phase != phHead { // not counted yet
			off += r.seg
		}
		return landingOf(&r.recv)[off:]
	case r.h.Opcode == wire.OpReadResponse: // a large one: not the ready-to-receive Read's
		s := c.sq.At(c.tx.oldRead)
		e := &s.sgl[0]
		return sgeBytes(e)[s.staged+r.seg : s.total]
	}
	return nil
}

// Landed is Input for the n bytes that were read into landings, which Landings gave. spill is
// scratch of at least SpillLen bytes, of which c may use a part while Waiting is true.
func (c *Conn) Landed(now time.Time, landings [][]byte, n int, spill []byte) {
	for i, p := range landings {
		if n == 0 {
			break
		}
		p = p[:min(n, len(p))]
		switch {
		case len(p) == 0:
		case i%2 == 1 && c.rx.phase != phPayload && !c.rx.wait.message: // between two payloads
			c.Input(now, p)
		case c.landsIn(p):
			if c.crc {
				c.rx.crc = wire.UpdateCRC(c.rx.crc, p)
			}
			c.countPlaced(len(p))
		default:
			// not as predicted: p may have another owner by now, and processing its bytes may
			// overwrite them
			spill = append(spill[:0], c.rx.rest...)
			for _, q := range landings[i:] {
				q = q[:min(n, len(q))]
				spill = append(spill, q...)
				n -= len(q)
			}
			if c.rx.wait.message {
				c.rx.rest = spill
			} else {
				c.Input(now, spill)
			}
			return
		}
		n -= len(p)
	}
	c.rx.heardAt = now
}

// landsIn reports whether p is where the next bytes go.
func (c *Conn) landsIn(p []byte) bool {
	r := &c.rx
	if c.closeNow || r.phase != phPayload || len(r.dst) < len(p) || &r.dst[0] != &p[0] {
		return false
	}
	c.recheckMemory()
	return r.dst != nil
}
