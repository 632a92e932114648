package wire

import "fmt"

// Error types and codes of Terminate messages (RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581 section 8).
const (
	TypeCatastrophic uint8 = 0 // RDMAP, DDP: local catastrophic; MPA: the only type

	RDMAPProtection uint8 = 1 // RDMAP: remote protection
	RDMAPOperation  uint8 = 2 // RDMAP: remote operation
	DDPTagged       uint8 = 1 // DDP: tagged buffer
	DDPUntagged     uint8 = 2 // DDP: untagged buffer
)

type termKey struct {
	layer      Layer
	kind, code uint8
}

var termText = map[termKey]string{
	{LayerRDMAP, 1, 0x00}: "invalid STag",
	{LayerRDMAP, 1, 0x01}: "base or bounds violation",
	{LayerRDMAP, 1, 0x02}: "access rights violation",
	{LayerRDMAP, 1, 0x03}: "STag not associated with this stream",
	{LayerRDMAP, 1, 0x04}: "TO wrap",
	{LayerRDMAP, 1, 0x09}: "STag cannot be invalidated",
	{LayerRDMAP, 1, 0xff}: "unspecified protection error",
	{LayerRDMAP, 2, 0x05}: "invalid RDMAP version",
	{LayerRDMAP, 2, 0x06}: "unexpected opcode",
	{LayerRDMAP, 2, 0x07}: "catastrophic error, this stream",
	{LayerRDMAP, 2, 0x08}: "catastrophic error, global",
	{LayerRDMAP, 2, 0x09}: "STag cannot be invalidated",
	{LayerRDMAP, 2, 0xff}: "unspecified operation error",
	{LayerDDP, 0, 0x00}:   "local catastrophic",
	{LayerDDP, 1, 0x00}:   "invalid STag",
	{LayerDDP, 1, 0x01}:   "base or bounds violation",
	{LayerDDP, 1, 0x02}:   "STag not associated with this stream",
	{LayerDDP, 1, 0x03}:   "TO wrap",
	{LayerDDP, 1, 0x04}:   "invalid DDP version",
	{LayerDDP, 2, 0x01}:   "invalid queue number",
	{LayerDDP, 2, 0x02}:   "no receive posted",
	{LayerDDP, 2, 0x03}:   "MSN out of range",
	{LayerDDP, 2, 0x04}:   "invalid MO",
	{LayerDDP, 2, 0x05}:   "message too long for the receive",
	{LayerDDP, 2, 0x06}:   "invalid DDP version",
	{LayerMPA, 0, 0x01}:   "TCP connection lost",
	{LayerMPA, 0, 0x02}:   "CRC mismatch",
	{LayerMPA, 0, 0x03}:   "FPDU start mismatch",
	{LayerMPA, 0, 0x04}:   "invalid Request or Reply frame",
	{LayerMPA, 0, 0x05}:   "local catastrophic",
	{LayerMPA, 0, 0x06}:   "insufficient IRD",
	{LayerMPA, 0, 0x07}:   "no matching RTR",
}

// known is true if the standards define the combination.
func known(l Layer, kind, code uint8) bool {
	if l == LayerRDMAP && kind == TypeCatastrophic {
		return true // any code
	}
	_, ok := termText[termKey{l, kind, code}]
	return ok
}

// TerminateText is a Terminate's layer, type and code, in words and as numbers.
func TerminateText(l Layer, kind, code uint8) string {
	s, ok := termText[termKey{l, kind, code}]
	switch {
	case ok:
	case l == LayerRDMAP && kind == TypeCatastrophic:
		s = "local catastrophic"
	default:
		s = "unknown error"
	}
	return fmt.Sprintf("%s %d/%02x %s", l, kind, code, s)
}

// MaxTerminateLen is the longest Terminate payload: control, length, untagged header, Read Request.
const MaxTerminateLen = 4 + 2 + UntaggedLen + ReadRequestLen

// Terminate is the payload of a Terminate message (RFC 5040 section 4.8).
type Terminate struct {
	Layer      Layer
	Type, Code uint8
	HasLength  bool   // M
	Length     uint16 // of the offending segment; only with HasLength
	DDP        []byte // the offending DDP header: TaggedLen or UntaggedLen bytes, or none (D)
	RDMAP      []byte // the offending Read Request's payload: ReadRequestLen bytes, or none (R)
	// Reversed is true for the bit order of siw on little-endian machines, which mirrors the bit fields of bytes 0 and 2.
	Reversed bool
}

const (
	termM, termD, termR          = 0x80, 0x40, 0x20
	siwTermM, siwTermD, siwTermR = 0x01, 0x02, 0x04
)

// AppendTerminate adds t to b. DDP and RDMAP must have one of the lengths stated at Terminate.
func AppendTerminate(b []byte, t *Terminate) []byte {
	m, d, r := byte(termM), byte(termD), byte(termR)
	first := byte(t.Layer)<<4 | t.Type&0x0f
	if t.Reversed {
		m, d, r = siwTermM, siwTermD, siwTermR
		first = t.Type<<4 | byte(t.Layer)&0x0f
	}
	var present byte
	if t.HasLength {
		present |= m
	}
	if len(t.DDP) > 0 {
		present |= d
	}
	if len(t.RDMAP) > 0 {
		present |= r
	}
	b = append(b, first, t.Code, present, 0)
	if t.HasLength {
		b = append(b, byte(t.Length>>8), byte(t.Length))
	}
	b = append(b, t.DDP...)
	return append(b, t.RDMAP...)
}

// ConsumeTerminate decodes the Terminate payload at the start of b, in either bit order. With ErrShort, Layer, Type and Code are
// valid all the same if b has its first four bytes.
func ConsumeTerminate(b []byte) (t Terminate, n int, err error) {
	if len(b) < 4 {
		return t, 0, ErrShort
	}
	t.Reversed = reversed(b)
	t.Layer, t.Type, t.Code = Layer(b[0]>>4), b[0]&0x0f, b[1]
	m, d, r := b[2]&termM != 0, b[2]&termD != 0, b[2]&termR != 0
	if t.Reversed {
		t.Layer, t.Type = Layer(b[0]&0x0f), b[0]>>4
		m, d, r = b[2]&siwTermM != 0, b[2]&siwTermD != 0, b[2]&siwTermR != 0
	}
	n = 4
	if m {
		if len(b) < n+2 {
			return t, 0, ErrShort
		}
		t.HasLength, t.Length = true, uint16(b[n])<<8|uint16(b[n+1])
		n += 2
	}
	if d {
		if len(b) <= n {
			return t, 0, ErrShort
		}
		l := UntaggedLen
		if b[n]&ddpTagged != 0 {
			l = TaggedLen
		}
		if len(b) < n+l {
			return t, 0, ErrShort
		}
		t.DDP = b[n : n+l : n+l]
		n += l
	}
	if r {
		if len(b) < n+ReadRequestLen {
			return t, 0, ErrShort
		}
		t.RDMAP = b[n : n+ReadRequestLen : n+ReadRequestLen]
		n += ReadRequestLen
	}
	return t, n, nil
}

// reversed tells siw's bit order. Byte 2 says it when it has a bit set; else only one of the two readings may be defined.
func reversed(b []byte) bool {
	switch {
	case b[2]&(termM|termD|termR) != 0:
		return false
	case b[2]&(siwTermM|siwTermD|siwTermR) != 0:
		return true
	}
	hi, lo := b[0]>>4, b[0]&0x0f
	return !known(Layer(hi), lo, b[1]) && known(Layer(lo), hi, b[1])
}
