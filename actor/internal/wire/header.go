package wire

import "encoding/binary"

// HeaderLen is the length, in bytes, of the header before every message.
const HeaderLen = 8

// Type is the type of a message.
type Type uint8

// The types of messages. Only data, offers and the messages of bundles take a credit.
const (
	TypeData    Type = 1
	TypeCredit  Type = 2 // a credit update
	TypeOffer   Type = 3 // stands for a message that is to be read
	TypeGoodbye Type = 4 // the last message
	TypeProbe   Type = 5 // wants an answer
	TypeAnswer  Type = 6
	// On secured connections only.
	TypeKeyUpdate Type = 7 // what its sender sends from here on is sealed with the next key
	// The first messages of both sides: a body, and counts of 0.
	TypeRequest  Type = 8
	TypeAccept   Type = 9
	TypeReject   Type = 10
	TypeRefusal  Type = 11 // a reject of the runtime's
	TypeReceives Type = 12 // its sender's receives have another size
	// From version 5 on.
	TypeBundle Type = 13 // several messages
)

const (
	// AckNow is the flag that asks for a credit update as soon as everything received has been
	// consumed.
	AckNow = 1
	// Resized is the flag that is set in every header of a side that has taken in an odd number of
	// TypeReceives.
	Resized = 2
)

// Header precedes every message between peers of this protocol: type u8, flags u8, pulled u16,
// consumed u32, in network order.
type Header struct {
	Type     Type
	Flags    uint8
	Pulled   uint16 // offers read since the connection began, modulo 2^16
	Consumed uint32 // messages consumed since the connection began, modulo 2^32
}

// Put writes the header to the first HeaderLen bytes of b.
func (h Header) Put(b []byte) {
	b[0], b[1] = uint8(h.Type), h.Flags
	binary.BigEndian.PutUint16(b[2:], h.Pulled)
	binary.BigEndian.PutUint32(b[4:], h.Consumed)
}

// isControl reports whether the message is about the connection: it takes no credit.
func (t Type) isControl() bool { return t != TypeData && t != TypeOffer && t != TypeBundle }

// bodyLen returns the bytes that such a message has behind its header.
func (t Type) bodyLen() int {
	if t == TypeReceives {
		return ReceivesLen
	}
	return 0
}

var controlNames = [...]string{TypeCredit: "a credit update", TypeGoodbye: "a goodbye", TypeProbe: "a probe", TypeAnswer: "an answer", TypeKeyUpdate: "a key update", TypeReceives: "a change of receives"}

// ParseHeader takes the header off a message, all of which is b. An error is a *ProtocolError.
func ParseHeader(b []byte) (h Header, err error) {
	return parseHeader(b, TypeAnswer, OfferLen)
}

// ParseSecuredHeader is ParseHeader for a secured connection, behind both sides' first messages.
func ParseSecuredHeader(b []byte) (h Header, err error) {
	return parseHeader(b, TypeKeyUpdate, SecuredOfferLen)
}

func parseHeader(b []byte, last Type, offer int) (h Header, err error) {
	if len(b) < HeaderLen {
		return h, newProtocolError("a message of %d bytes has no room for the header of %d", len(b), HeaderLen)
	}
	h = Header{Type(b[0]), b[1], binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])}
	switch {
	case (h.Type < TypeData || h.Type > last) && h.Type != TypeReceives && h.Type != TypeBundle:
		return h, newProtocolError("unknown message type %d", h.Type)
	case h.Flags&^(AckNow|Resized) != 0:
		return h, newProtocolError("unknown flags %#x", h.Flags)
	case h.Type.isControl() && len(b) != HeaderLen+h.Type.bodyLen():
		return h, newProtocolError("%s of %d bytes, want %d", controlNames[h.Type], len(b), HeaderLen+h.Type.bodyLen())
	case h.Type == TypeOffer && len(b) != HeaderLen+offer:
		return h, newProtocolError("an offer of %d bytes, want %d", len(b), HeaderLen+offer)
	}
	return h, nil
}
