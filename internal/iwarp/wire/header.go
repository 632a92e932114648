package wire

import (
	"encoding/binary"

	"github.com/rdmactor/rdmactor/internal/enum"
)

// Opcode is an RDMAP opcode (RFC 5040 section 4.1, RFC 7306).
type Opcode uint8

// The opcodes.
const (
	OpWrite            Opcode = 0
	OpReadRequest      Opcode = 1
	OpReadResponse     Opcode = 2
	OpSend             Opcode = 3
	OpSendInvalidate   Opcode = 4
	OpSendSE           Opcode = 5
	OpSendSEInvalidate Opcode = 6
	OpTerminate        Opcode = 7
	OpImmediate        Opcode = 8
	OpImmediateSE      Opcode = 9
	OpAtomicRequest    Opcode = 10
	OpAtomicResponse   Opcode = 11
)

var opNames = []string{
	"Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with SE", "Send with SE and Invalidate",
	"Terminate", "Immediate Data", "Immediate Data with SE", "Atomic Request", "Atomic Response",
}

// String returns the opcode's name in RFC 5040 or RFC 7306.
func (o Opcode) String() string { return enum.At(opNames, o, "opcode %d") }

// MarshalText is String's text.
func (o Opcode) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Tagged is true if messages of the opcode use DDP's tagged buffer model.
func (o Opcode) Tagged() bool { return o == OpWrite || o == OpReadResponse }

// Send is true for the four Send opcodes.
func (o Opcode) Send() bool { return o >= OpSend && o <= OpSendSEInvalidate }

// Queue returns the DDP queue number of an untagged opcode (RFC 5040 section 5.4, RFC 7306 section
// 5).
func (o Opcode) Queue() uint32 {
	if o == OpReadRequest || o == OpAtomicRequest {
		return 1
	}
	if o == OpTerminate {
		return 2
	}
	if o == OpAtomicResponse {
		return 3
	}
	return 0
}

// DDP header sizes, in bytes, the two control bytes included.
const (
	CtrlLen     = 2
	TaggedLen   = 14
	UntaggedLen = 18
)

const (
	ddpTagged    = 0x80
	ddpLast      = 0x40
	ddpVersion   = 1
	rdmapVersion = 1 << 6
)

// Header is the DDP header of a segment with its RDMAP control byte (RFC 5041 section 4, RFC 5040
// section 4.1).
type Header struct {
	Tagged, Last bool
	Opcode       Opcode
	STag         uint32 // tagged: the buffer; untagged: the STag to invalidate, or 0
	TO           uint64 // tagged only
	QN, MSN, MO  uint32 // untagged only
}

// Len returns the encoded length of h.
func (h *Header) Len() int {
	if h.Tagged {
		return TaggedLen
	}
	return UntaggedLen
}

// AppendHeader appends h to b. Reserved bits are zero.
func AppendHeader(b []byte, h *Header) []byte {
	ctl := byte(ddpVersion)
	if h.Tagged {
		ctl |= ddpTagged
	}
	if h.Last {
		ctl |= ddpLast
	}
	b = append(b, ctl, rdmapVersion|byte(h.Opcode)&0x0f)
	b = binary.BigEndian.AppendUint32(b, h.STag)
	if h.Tagged {
		return binary.BigEndian.AppendUint64(b, h.TO)
	}
	b = binary.BigEndian.AppendUint32(b, h.QN)
	b = binary.BigEndian.AppendUint32(b, h.MSN)
	return binary.BigEndian.AppendUint32(b, h.MO)
}

// ConsumeCtrl decodes the two control bytes at the start of b, which determine the length of the
// header. It checks the versions, the opcode, and whether the opcode fits the buffer model.
// Reserved bits are ignored.
func ConsumeCtrl(b []byte) (h Header, n int, err error) {
	if len(b) < CtrlLen {
		return h, 0, ErrShort
	}
	h.Tagged, h.Last = b[0]&ddpTagged != 0, b[0]&ddpLast != 0
	h.Opcode = Opcode(b[1] & 0x0f)
	switch {
	case b[0]&3 != ddpVersion && h.Tagged:
		err = &Error{LayerDDP, DDPTagged, 4, "DDP version", uint64(b[0] & 3)}
	case b[0]&3 != ddpVersion:
		err = &Error{LayerDDP, DDPUntagged, 6, "DDP version", uint64(b[0] & 3)}
	case b[1]&0xc0 != rdmapVersion:
		err = &Error{LayerRDMAP, RDMAPOperation, 5, "RDMAP version", uint64(b[1] >> 6)}
	case h.Opcode > OpAtomicResponse:
		err = &Error{LayerRDMAP, RDMAPOperation, 6, "RDMAP opcode", uint64(h.Opcode)}
	case h.Opcode.Tagged() != h.Tagged:
		err = &Error{LayerRDMAP, RDMAPOperation, 6, "DDP tagged flag for " + h.Opcode.String(), uint64(b[0] >> 7)}
	}
	return h, CtrlLen, err
}

// ConsumeHeader decodes the header at the start of b.
func ConsumeHeader(b []byte) (h Header, n int, err error) {
	h, _, err = ConsumeCtrl(b)
	if err != nil {
		return h, 0, err
	}
	n = h.Len()
	if len(b) < n {
		return h, 0, ErrShort
	}
	h.STag = binary.BigEndian.Uint32(b[2:])
	if h.Tagged {
		h.TO = binary.BigEndian.Uint64(b[6:])
		return h, n, nil
	}
	h.QN = binary.BigEndian.Uint32(b[6:])
	h.MSN = binary.BigEndian.Uint32(b[10:])
	h.MO = binary.BigEndian.Uint32(b[14:])
	return h, n, nil
}

// ReadRequestLen is the length of a Read Request's payload, in bytes.
const ReadRequestLen = 28

// ReadRequest is the payload of a Read Request (RFC 5040 section 4.4).
type ReadRequest struct {
	SinkSTag   uint32
	SinkTO     uint64
	Size       uint32
	SourceSTag uint32
	SourceTO   uint64
}

// AppendReadRequest appends r to b.
func AppendReadRequest(b []byte, r *ReadRequest) []byte {
	b = binary.BigEndian.AppendUint32(b, r.SinkSTag)
	b = binary.BigEndian.AppendUint64(b, r.SinkTO)
	b = binary.BigEndian.AppendUint32(b, r.Size)
	b = binary.BigEndian.AppendUint32(b, r.SourceSTag)
	return binary.BigEndian.AppendUint64(b, r.SourceTO)
}

// ConsumeReadRequest decodes the payload at the start of b.
func ConsumeReadRequest(b []byte) (r ReadRequest, n int, err error) {
	if len(b) < ReadRequestLen {
		return r, 0, ErrShort
	}
	r.SinkSTag = binary.BigEndian.Uint32(b)
	r.SinkTO = binary.BigEndian.Uint64(b[4:])
	r.Size = binary.BigEndian.Uint32(b[12:])
	r.SourceSTag = binary.BigEndian.Uint32(b[16:])
	r.SourceTO = binary.BigEndian.Uint64(b[20:])
	return r, ReadRequestLen, nil
}
