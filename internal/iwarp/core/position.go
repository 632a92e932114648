package core

import (
	"encoding/binary"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// Position locates the next byte in a stream of MPA frames and FPDUs.
type Position struct {
	// Head has the earlier bytes of the frame or FPDU that the next byte belongs to, if all are
	// known. It is valid until the next call into the Conn.
	Head []byte
	// Rest is the number of bytes of it still to come, if Head is not known; 0: it begins with the
	// next byte; negative: unknown, because input is discarded.
	Rest int
}

// InputPosition returns the position of the next byte for Input or Landed. It serves a copy of the
// stream that begins in its middle.
func (c *Conn) InputPosition() Position {
	in := &c.in
	switch {
	case c.state == stEnded || c.closeNow || in.deaf:
		return Position{Rest: -1}
	case len(c.setup.frame) > 0:
		return Position{Head: c.setup.frame}
	case len(in.rest) > 0:
		return positionBehind(in.rest, in.unreadBytes())
	case in.phase == phHead && !in.waits:
		return Position{Head: in.seg.raw[:in.seg.have]}
	}
	return Position{Rest: in.unreadBytes()}
}

// unreadBytes returns how many bytes of the FPDU whose header is here are still to be processed.
func (in *input) unreadBytes() int {
	trailer := in.seg.trailerLen()
	switch in.phase {
	case phHead:
		return in.seg.left() + trailer
	case phPayload:
		return in.left + trailer
	case phTrailer:
	}
	return trailer - int(in.tail)
}

// positionBehind returns the position behind b, which was read and begins with the last skip bytes
// of an FPDU.
func positionBehind(b []byte, skip int) Position {
	for skip <= len(b) {
		if b = b[skip:]; len(b) < wire.LengthLen {
			return Position{Head: b}
		}
		skip = wire.FPDULen(int(binary.BigEndian.Uint16(b)))
	}
	return Position{Rest: skip - len(b)}
}

// OutputPosition returns the position of the next byte that Advance will report. Of an MPA frame or
// a Terminate that has begun, only the remaining length is known. It never has a Head.
func (c *Conn) OutputPosition() Position {
	o := &c.out
	switch {
	case o.raw != nil:
		return Position{Rest: len(o.raw)}
	case o.batch != nil:
		return Position{Rest: int(o.batch.nextBoundary(o.sent) - o.sent)}
	}
	return Position{}
}
