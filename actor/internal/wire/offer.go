package wire

import (
	"encoding/binary"
	"math"
)

const (
	// OfferLen is the length, in bytes, of what follows the header of an offer.
	OfferLen = 16
	// MaxOffers is how many offers of a side its peer may not have read.
	MaxOffers = 8
	// SecuredOfferLen is OfferLen on a secured connection.
	SecuredOfferLen = OfferLen + 8
)

// Offer names the memory where the peer may read a message: length u32, key u32, address u64, in
// network order.
type Offer struct {
	Length uint32 // bytes
	Key    uint32
	Addr   uint64
	Number uint64 // of the message, on a secured connection
}

// Put writes the offer to the first OfferLen bytes of b.
func (o Offer) Put(b []byte) {
	binary.BigEndian.PutUint32(b, o.Length)
	binary.BigEndian.PutUint32(b[4:], o.Key)
	binary.BigEndian.PutUint64(b[8:], o.Addr)
}

// PutSecured writes the offer of a secured connection to the first SecuredOfferLen bytes of b.
func (o Offer) PutSecured(b []byte) {
	o.Put(b)
	binary.BigEndian.PutUint64(b[OfferLen:], o.Number)
}

// ParseOffer parses the bytes behind the header of an offer: OfferLen bytes, or SecuredOfferLen.
// limit is the local limit in bytes. An error is a *ProtocolError.
func ParseOffer(b []byte, limit int) (Offer, error) {
	o := Offer{Length: binary.BigEndian.Uint32(b), Key: binary.BigEndian.Uint32(b[4:]), Addr: binary.BigEndian.Uint64(b[8:])}
	if len(b) == SecuredOfferLen {
		o.Number = binary.BigEndian.Uint64(b[OfferLen:])
	}
	switch {
	case o.Length == 0 || int(o.Length) > limit:
		return o, newProtocolError("an offer of a message of %d bytes, and we take %d", o.Length, limit)
	case uint64(o.Length-1) > math.MaxUint64-o.Addr:
		return o, newProtocolError("an offer of %d bytes at %#x, beyond the end of the address space", o.Length, o.Addr)
	}
	return o, nil
}
