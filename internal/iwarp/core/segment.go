package core

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// headLen is the number of an FPDU's bytes that determine the length of its header.
const headLen = wire.LengthLen + wire.CtrlLen

// segment is the DDP segment that is arriving, in an FPDU.
type segment struct {
	// length, headers, Read Request or Terminate payload
	raw   [wire.LengthLen + wire.UntaggedLen + wire.MaxTerminateLen]byte
	have  uint8 // bytes in raw
	need  uint8 // bytes wanted there
	h     wire.Header
	ulpdu uint16 // the FPDU's length field
	size  uint32 // payload bytes
}

// fill takes bytes of the length and the headers, and returns how many.
func (s *segment) fill(b []byte) int {
	n := copy(s.raw[s.have:s.need], b)
	s.have += uint8(n)
	return n
}

// parseControl checks the length and the control bytes and sets how many header bytes are needed in
// all.
func (s *segment) parseControl() *fault {
	s.ulpdu = binary.BigEndian.Uint16(s.raw[:])
	if s.ulpdu < wire.CtrlLen {
		return newFault(wire.LayerMPA, 0, 3, fmt.Sprintf("FPDU of %d bytes, too short for any header", s.ulpdu))
	}
	h, _, err := wire.ConsumeCtrl(s.raw[wire.LengthLen:s.have])
	s.h = h
	if err != nil {
		return wireFault(err)
	}
	n := h.Len()
	if h.Opcode == wire.OpReadRequest {
		n += wire.ReadRequestLen
	}
	if h.Opcode == wire.OpTerminate {
		n += min(max(int(s.ulpdu)-n, 4), wire.MaxTerminateLen)
	}
	if int(s.ulpdu) < n {
		return newFault(wire.LayerMPA, 0, 3, fmt.Sprintf("FPDU of %d bytes, too short for the header of a %v", s.ulpdu, h.Opcode))
	}
	s.need = uint8(wire.LengthLen + n)
	return nil
}

// parseHeader parses the header, which is complete, and whose control bytes were valid.
func (s *segment) parseHeader() {
	s.h, _, _ = wire.ConsumeHeader(s.raw[wire.LengthLen:s.have])
	s.size = uint32(s.left())
}

// left returns how many bytes of the ULPDU are behind those in raw.
func (s *segment) left() int { return wire.LengthLen + int(s.ulpdu) - int(s.have) }

// trailerLen returns the length of pad and CRC.
func (s *segment) trailerLen() int { return wire.PadLen(int(s.ulpdu)) + wire.CRCLen }

// readRequest returns the Read Request.
func (s *segment) readRequest() wire.ReadRequest {
	q, _, _ := wire.ConsumeReadRequest(s.raw[wire.LengthLen+wire.UntaggedLen : s.have])
	return q
}

// terminate returns the Terminate, of which at least the first four bytes are here.
func (s *segment) terminate() wire.Terminate {
	t, _, _ := wire.ConsumeTerminate(s.raw[wire.LengthLen+wire.UntaggedLen : s.have])
	return t
}

// copyHeaders adds the segment's length and headers to a Terminate (RFC 5040 section 4.8).
func (s *segment) copyHeaders(t *wire.Terminate) {
	h, n := s.raw[wire.LengthLen:s.have], s.h.Len()
	t.HasLength, t.Length = true, s.ulpdu
	t.DDP = h[:n]
	if s.h.Opcode == wire.OpReadRequest {
		t.RDMAP = h[n:]
	}
}
