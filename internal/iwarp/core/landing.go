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
	in, s := &c.in, &c.in.seg
	if c.closeNow {
		return dst
	}
	head := wire.LengthLen + s.h.Len()
	trailer := s.trailerLen()
	between := head
	var rest []byte
	switch {
	case in.phase == phPayload && len(in.dst) >= LandingMin:
		if in.recheckMemory(&c.stream.access); in.dst == nil {
			return dst
		}
		dst, between = append(dst, in.dst), trailer+head
		if !s.h.Last {
			rest = c.stream.restOfMessage(s.h.Opcode)
			rest = rest[min(len(rest), int(s.size)):]
		}
	case in.phase == phHead && s.have == 0 && c.stream.receives.taken && s.h.Opcode.Send() && s.size >= LandingMin &&
		c.stream.access.isUsable(c.stream.receives.current.SGE.MR):
		if rest = c.stream.receives.rest(); s.h.Last || len(rest) < LandingMin {
			return dst
		}
		dst = append(dst, nil)
	default:
		return dst
	}
	for n := 0; len(rest) >= LandingMin; {
		p := rest[:min(len(rest), int(s.size))]
		if n += len(p); n > aheadMax || len(stage) < 2*between || cap(dst)-len(dst) < 3 {
			break
		}
		dst = append(dst, stage[:between:between], p)
		stage, rest, between = stage[between:], rest[len(p):], trailer+head
	}
	return append(dst, stage)
}

// Landed is Input for the n bytes that were read into landings, which Landings gave. spill is
// scratch of at least SpillLen bytes, of which c may use a part while Waiting is true.
func (c *Conn) Landed(now time.Time, landings [][]byte, n int, spill []byte) {
	in := &c.in
	for i, p := range landings {
		if n == 0 {
			break
		}
		p = p[:min(n, len(p))]
		switch {
		case len(p) == 0:
		case i%2 == 1 && in.phase != phPayload && !in.waits: // between two payloads
			c.Input(now, p)
		case !c.closeNow && in.landsIn(p, &c.stream.access):
			in.countPlaced(p)
		default:
			// not as predicted: p may have another owner by now, and processing its bytes may
			// overwrite them
			spill = append(spill[:0], in.rest...)
			for _, q := range landings[i:] {
				q = q[:min(n, len(q))]
				spill = append(spill, q...)
				n -= len(q)
			}
			if in.waits {
				in.rest = spill
			} else {
				c.Input(now, spill)
			}
			return
		}
		n -= len(p)
	}
	in.heardAt = now
}

// landsIn reports whether p is where the next bytes go.
func (in *input) landsIn(p []byte, a *access) bool {
	if in.phase != phPayload || len(in.dst) < len(p) || &in.dst[0] != &p[0] {
		return false
	}
	in.recheckMemory(a)
	return in.dst != nil
}
