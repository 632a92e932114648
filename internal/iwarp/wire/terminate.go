package wire

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
	// Reversed is true for the bit order that siw uses on little-endian machines: the bit fields of
	// bytes 0 and 2 are mirrored.
	Reversed bool
}

const (
	termM, termD, termR          = 0x80, 0x40, 0x20
	siwTermM, siwTermD, siwTermR = 0x01, 0x02, 0x04
)

// AppendTerminate appends t to b. DDP and RDMAP must have one of the lengths stated at Terminate.
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

// ConsumeTerminate decodes the Terminate payload at the start of b, in either bit order. If the
// error is ErrShort, Layer, Type and Code are still valid if b has at least four bytes.
func ConsumeTerminate(b []byte) (t Terminate, n int, err error) {
	if len(b) < 4 {
		return t, 0, ErrShort
	}
	t.Reversed = isSiwOrder(b)
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

// isSiwOrder recognizes siw's bit order. If byte 2 has a bit set, that bit decides. Otherwise the
// order is siw's if the type and code are defined only when read in that order.
func isSiwOrder(b []byte) bool {
	switch {
	case b[2]&(termM|termD|termR) != 0:
		return false
	case b[2]&(siwTermM|siwTermD|siwTermR) != 0:
		return true
	}
	hi, lo := b[0]>>4, b[0]&0x0f
	return !isDefined(Layer(hi), lo, b[1]) && isDefined(Layer(lo), hi, b[1])
}
