package wire

import (
	"encoding/binary"
	"slices"
)

// Flags is the flags byte of an MPA frame (RFC 5044 section 7.1.1, RFC 6581 section 6).
type Flags uint8

// The flags. The low four bits are reserved; siw uses 0x08.
const (
	FlagMarkers  Flags = 0x80 // M: the sender of the frame wants to receive markers
	FlagCRC      Flags = 0x40 // C: the sender of the frame wants CRC
	FlagReject   Flags = 0x20 // R: the connection is rejected; Replies only
	FlagEnhanced Flags = 0x10 // S: a control word begins the private data; revision 2
)

// MPA frame sizes, in bytes.
const (
	FrameLen   = 20 // an MPA frame without private data
	ControlLen = 4  // the control word
	// the largest private data length in a frame, control word included (RFC 5044 section 7.1.1)
	MaxPrivateData = 512
	MaxRevision    = 2
)

const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// NotNegotiated in IRD or ORD means that the limit is not agreed on at this layer (RFC 6581
// section 9.1).
const NotNegotiated = 0x3fff

// Control is the revision 2 control word (RFC 6581 section 9).
type Control struct {
	PeerToPeer bool // A: peer-to-peer model
	RTREmpty   bool // B: an empty FPDU may be, or is, the ready-to-receive message
	RTRWrite   bool // C: a zero-length Write
	RTRRead    bool // D: a zero-length Read
	// 14 bits: Reads that the sender can serve at once, and that it wants to have outstanding
	IRD, ORD uint16
}

// Frame is an MPA Request or Reply.
type Frame struct {
	Reply    bool
	Flags    Flags
	Revision uint8
	Control  Control // only with FlagEnhanced and revision 2
	Private  []byte  // the application's, without the control word
}

// Enhanced is true if the frame carries a control word.
func (f *Frame) Enhanced() bool { return f.Flags&FlagEnhanced != 0 && f.Revision >= 2 }

// AppendFrame appends f to b. Private, plus the control word if there is one, must not be longer
// than MaxPrivateData.
func AppendFrame(b []byte, f *Frame) []byte {
	key := requestKey
	if f.Reply {
		key = replyKey
	}
	n := len(f.Private)
	if f.Enhanced() {
		n += ControlLen
	}
	b = append(slices.Grow(b, FrameLen+n), key...)
	b = append(b, byte(f.Flags), f.Revision)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	if f.Enhanced() {
		b = appendControl(b, f.Control)
	}
	return append(b, f.Private...)
}

func appendControl(b []byte, c Control) []byte {
	ird, ord := c.IRD&NotNegotiated, c.ORD&NotNegotiated
	if c.PeerToPeer {
		ird |= 0x8000
	}
	if c.RTREmpty {
		ird |= 0x4000
	}
	if c.RTRWrite {
		ord |= 0x8000
	}
	if c.RTRRead {
		ord |= 0x4000
	}
	b = binary.BigEndian.AppendUint16(b, ird)
	return binary.BigEndian.AppendUint16(b, ord)
}

func parseControl(b []byte) Control {
	ird, ord := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return Control{
		PeerToPeer: ird&0x8000 != 0, RTREmpty: ird&0x4000 != 0, IRD: ird & NotNegotiated,
		RTRWrite: ord&0x8000 != 0, RTRRead: ord&0x4000 != 0, ORD: ord & NotNegotiated,
	}
}

func frameError(field string, v uint64) error {
	return &Error{Layer: LayerMPA, Code: 4, Field: field, Value: v}
}

// ConsumeFrame decodes the MPA frame at the start of b. A wrong key is an error (ErrKey) as soon as
// b contains its first wrong byte. If the error is about the revision or the length, f.Flags and
// f.Revision are set nevertheless, because they are needed for the answer.
func ConsumeFrame(b []byte) (f Frame, n int, err error) {
	if err := consumeKey(b, &f); err != nil {
		return f, 0, err
	}
	f.Flags, f.Revision = Flags(b[16]), b[17]
	pd := int(binary.BigEndian.Uint16(b[18:]))
	switch {
	case f.Revision > MaxRevision:
		return f, 0, frameError("MPA revision", uint64(f.Revision))
	case pd > MaxPrivateData:
		return f, 0, frameError("MPA private data length", uint64(pd))
	case f.Enhanced() && pd < ControlLen:
		return f, 0, frameError("MPA private data length with a control word", uint64(pd))
	case len(b) < FrameLen+pd:
		return f, 0, ErrShort
	}
	f.Private = b[FrameLen : FrameLen+pd : FrameLen+pd]
	if f.Enhanced() {
		f.Control, f.Private = parseControl(f.Private), f.Private[ControlLen:]
	}
	return f, FrameLen + pd, nil
}

// consumeKey checks the part of the key that b contains. A nil error means that the fixed part of
// the frame is complete. The two keys differ in one byte.
func consumeKey(b []byte, f *Frame) error {
	for i, v := range b[:min(len(b), len(requestKey))] {
		switch v {
		case requestKey[i]:
		case replyKey[i]:
			f.Reply = true
		default:
			return frameError(fieldKey, uint64(v))
		}
	}
	if len(b) < FrameLen {
		return ErrShort
	}
	return nil
}
