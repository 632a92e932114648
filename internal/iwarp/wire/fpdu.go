package wire

import "encoding/binary"

// FPDU sizes, in bytes (RFC 5044 section 4).
const (
	LengthLen = 2 // the ULPDU length field
	CRCLen    = 4
	MaxULPDU  = 65535
)

// FPDU is one framed DDP segment.
type FPDU struct {
	ULPDU []byte  // the DDP segment: headers and payload
	Pad   [3]byte // as many bytes as PadLen says; we send zeros, other implementations may not
	CRC   uint32  // CRC32c, or 0 if CRC is not in use
}

// PadLen is the number of pad bytes behind a ULPDU of n bytes.
func PadLen(n int) int { return -(LengthLen + n) & 3 }

// FPDULen is the length of the FPDU that carries a ULPDU of n bytes.
func FPDULen(n int) int { return LengthLen + n + PadLen(n) + CRCLen }

// Checksum computes the CRC that f should have.
func (f *FPDU) Checksum() uint32 {
	l := [LengthLen]byte{byte(len(f.ULPDU) >> 8), byte(len(f.ULPDU))}
	return UpdateCRC(UpdateCRC(UpdateCRC(0, l[:]), f.ULPDU), f.Pad[:PadLen(len(f.ULPDU))])
}

// AppendFPDU appends f to b. It uses f.CRC unchanged. The ULPDU must not be longer than MaxULPDU.
func AppendFPDU(b []byte, f *FPDU) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.ULPDU)))
	b = append(b, f.ULPDU...)
	b = append(b, f.Pad[:PadLen(len(f.ULPDU))]...)
	return binary.LittleEndian.AppendUint32(b, f.CRC)
}

// ConsumeFPDU decodes the FPDU at the start of b. It does not check the CRC: if CRC is in use,
// compare it with Checksum.
func ConsumeFPDU(b []byte) (f FPDU, n int, err error) {
	if len(b) < LengthLen {
		return f, 0, ErrShort
	}
	l := int(binary.BigEndian.Uint16(b))
	n = FPDULen(l)
	if len(b) < n {
		return f, 0, ErrShort
	}
	end := LengthLen + l
	f.ULPDU = b[LengthLen:end:end]
	copy(f.Pad[:], b[end:n-CRCLen])
	f.CRC = binary.LittleEndian.Uint32(b[n-CRCLen:])
	return f, n, nil
}
