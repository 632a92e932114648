package core

import (
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// send is a posted send work request.
type send struct {
	id uint64
	// stream offsets of its first byte and of the byte after its last one; end is valid once staged
	// == total and done
	begin, end uint64
	raddr      uint64
	total      uint32 // payload bytes; a Read: bytes asked for
	staged     uint32 // how many of them are in FPDUs made so far; a Read: bytes that have arrived
	rkey       uint32
	op         verbs.Opcode
	flags      verbs.SendFlags
	begun      bool        // begin is valid
	done       bool        // its last FPDU is staged
	answered   bool        // a Read whose data has arrived
	piece      int         // where the next FPDU's payload begins: the element of sgl ...
	pieceOff   uint32      // ... and the offset in it (in inline, if that is used)
	inline     []byte      // the slot's own memory
	sgl        []verbs.SGE // the slot's own memory
}

// readSink returns where the data of a Read goes: STag and TO, both 0 if it has no bytes.
func (s *send) readSink() (stag uint32, to uint64) {
	if s.total == 0 || len(s.sgl) == 0 {
		return 0, 0
	}
	e := &s.sgl[0]
	return e.MR.LKey, e.MR.Addr + uint64(e.Offset)
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

// payload is n bytes: the next bytes of a send, or those of one slice. The zero payload is empty.
type payload struct {
	s   *send
	one []byte
	n   uint32
}

// maxPieces returns the most slices that next may return.
func (p *payload) maxPieces() int {
	if p.s == nil {
		return 1
	}
	return max(1, len(p.s.sgl))
}

// next returns the next contiguous part of the remaining payload, nil at the end. It advances the
// send's cursor.
func (p *payload) next() []byte {
	s := p.s
	if s == nil {
		one := p.one
		p.one = nil
		return one
	}
	for p.n > 0 {
		src := s.inline
		if len(s.sgl) > 0 {
			e := &s.sgl[s.piece]
			if s.pieceOff == e.Length {
				s.piece, s.pieceOff = s.piece+1, 0
				continue
			}
			src = sgeBytes(e)
		}
		src = src[s.pieceOff:]
		src = src[:min(uint32(len(src)), p.n)]
		s.pieceOff += uint32(len(src))
		p.n -= uint32(len(src))
		return src
	}
	return nil
}

// sgeBytes returns the bytes of e, which has a region. Their end may be at an offset that does not
// fit in 32 bits.
func sgeBytes(e *verbs.SGE) []byte { return e.MR.Bytes[e.Offset:][:e.Length] }
