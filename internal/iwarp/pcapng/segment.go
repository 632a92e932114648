package pcapng

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

const (
	ip4Len, ip6Len = 20, 40
	tcpLen         = 20
	synOptions     = 8
	maxHeader      = ip6Len + tcpLen + synOptions
	protocolTCP    = 6
	hopLimit       = 64

	// MaxPayload is the largest payload of a segment: an IPv4 packet has at most 65,535 bytes.
	MaxPayload = 1<<16 - 1 - ip4Len - tcpLen

	// A window of 1 GiB: the real one is unknown, and one that is never full raises no questions.
	window      = 1<<16 - 1
	windowScale = 14
)

// Flags are a segment's flags.
type Flags uint8

// The flags of the connections here.
const (
	FIN Flags = 0x01
	SYN Flags = 0x02
	RST Flags = 0x04
	PSH Flags = 0x08
	ACK Flags = 0x10
)

// Segment contains the variable header fields of a TCP segment. From and To are of one family, and
// not IPv4 mapped in IPv6.
type Segment struct {
	From, To netip.AddrPort
	Seq, Ack uint32
	Flags    Flags
}

func (s *Segment) headerLen() int {
	n := ip6Len + s.tcpHeader()
	if s.From.Addr().Is4() {
		n = ip4Len + s.tcpHeader()
	}
	return n
}

func (s *Segment) tcpHeader() int {
	if s.Flags&SYN != 0 {
		return tcpLen + synOptions
	}
	return tcpLen
}

// appendPacket appends the packet: IP header, TCP header, payload.
func (s *Segment) appendPacket(b []byte, payload [][]byte) []byte {
	n := s.tcpHeader()
	for _, p := range payload {
		n += len(p)
	}
	if n > MaxPayload+tcpLen {
		panic("pcapng: a payload that no packet can carry")
	}
	b = s.appendIP(b, n)
	at := len(b)
	b = s.appendTCP(b)
	for _, p := range payload {
		b = append(b, p...)
	}
	sum := s.pseudoHeader(n)
	binary.BigEndian.PutUint16(b[at+16:], ^foldSum(addToSum(sum, b[at:])))
	return b
}

// appendIP appends the IP header of a packet with n bytes of TCP.
func (s *Segment) appendIP(b []byte, n int) []byte {
	from, to := s.From.Addr(), s.To.Addr()
	if !from.Is4() {
		b = append(b, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
		b = append(b, protocolTCP, hopLimit)
		return appendAddr(appendAddr(b, from), to)
	}
	at := len(b)
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(ip4Len+n))
	b = append(b, 0, 0, 0x40, 0, hopLimit, protocolTCP, 0, 0) // do not fragment
	b = appendAddr(appendAddr(b, from), to)
	binary.BigEndian.PutUint16(b[at+10:], ^foldSum(addToSum(0, b[at:])))
	return b
}

func appendAddr(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		ip := a.As4()
		return append(b, ip[:]...)
	}
	ip := a.As16()
	return append(b, ip[:]...)
}

func (s *Segment) appendTCP(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, s.From.Port())
	b = binary.BigEndian.AppendUint16(b, s.To.Port())
	b = binary.BigEndian.AppendUint32(b, s.Seq)
	b = binary.BigEndian.AppendUint32(b, s.Ack)
	b = append(b, byte(s.tcpHeader()/4)<<4, byte(s.Flags))
	b = binary.BigEndian.AppendUint16(b, window)
	b = append(b, 0, 0, 0, 0) // checksum, urgent pointer
	if s.Flags&SYN != 0 {
		b = append(b, 2, 4, MaxPayload>>8, MaxPayload&0xff) // the largest segment
		b = append(b, 1, 3, 3, windowScale)                 // no operation, and the window's scale
	}
	return b
}

// pseudoHeader returns the checksum of the fields that TCP's checksum covers besides the segment.
func (s *Segment) pseudoHeader(n int) uint64 {
	var b [36]byte
	h := appendAddr(appendAddr(b[:0], s.From.Addr()), s.To.Addr())
	return addToSum(uint64(protocolTCP)+uint64(n), h)
}

// addToSum adds b to a sum in one's complement, eight bytes at a time (RFC 1071, 2(B) and (C)).
func addToSum(sum uint64, b []byte) uint64 {
	var carry uint64
	for len(b) >= 32 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), 0)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), carry)
		sum, carry = bits.Add64(sum, 0, carry)
		sum += carry
		b = b[32:]
	}
	for len(b) >= 2 {
		sum, carry = bits.Add64(sum, uint64(binary.BigEndian.Uint16(b)), 0)
		sum += carry
		b = b[2:]
	}
	if len(b) > 0 {
		sum, carry = bits.Add64(sum, uint64(b[0])<<8, 0)
		sum += carry
	}
	return sum
}

// foldSum reduces a sum to 16 bits.
func foldSum(sum uint64) uint16 {
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
