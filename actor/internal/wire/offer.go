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
)

// Offer says where the peer may read a message: length u32, key u32, address u64, in network order.
type Offer struct {
	Length uint32 // bytes
	Key    uint32
	Addr   uint64
}

// Put writes the offer to the first OfferLen bytes of b.
func (o Offer) Put(b []byte) {
	binary.BigEndian.PutUint32(b, o.Length)
	binary.BigEndian.PutUint32(b[4:], o.Key)
	binary.BigEndian.PutUint64(b[8:], o.Addr)
}

// ParseOffer takes what ParseHeader has left of an offer: OfferLen bytes. limit is the most bytes
// that we take. An error is a *ProtocolError.
func ParseOffer(b []byte, limit int) (Offer, error) {
	o := Offer{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])}
	switch {
	case o.Length == 0 || int(o.Length) > limit:
		return o, violation("an offer of a message of %d bytes, and we take %d", o.Length, limit)
	case uint64(o.Length-1) > math.MaxUint64-o.Addr:
		return o, violation("an offer of %d bytes at %#x, beyond the end of the address space", o.Length, o.Addr)
	}
	return o, nil
}
