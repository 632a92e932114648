package cmid

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/enum"
)

// Addr is a sockaddr. The zero Addr is C's NULL; wildcards are 0.0.0.0 and ::.
type Addr struct {
	netip.AddrPort
	IB *SockaddrIB // an AF_IB address; AddrPort is then zero
}

// SockaddrIB is struct sockaddr_ib, in host byte order. Only InfiniBand and RoCE devices have such
// addresses.
type SockaddrIB struct {
	PKey     uint16
	FlowInfo uint32
	GID      [16]byte
	SID      uint64 // service id
	SIDMask  uint64
	ScopeID  uint64
}

// MustAddr parses "host:port" with a literal address; it panics when s is not one. For programs'
// constants and tests.
func MustAddr(s string) Addr {
	a, err := ParseAddr(s)
	if err != nil {
		panic(err)
	}
	return a
}

// ParseAddr parses "host:port" with a literal address; an IPv6 address may have a zone
// ([fe80::1%eth0]:7471). A zone that is the number of an interface becomes its name. Names are for
// GetAddrInfo. Its error is EINVAL.
func ParseAddr(s string) (Addr, error) {
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		return Addr{}, fmt.Errorf("address %q: want IP:PORT such as 127.0.0.1:7471 or [::1]:7471 (names are for GetAddrInfo): %w", s, unix.EINVAL)
	}
	return AddrFrom(nameZone(ap.Addr()), ap.Port()), nil
}

// nameZone returns ip with the interface's name in place of a zone that is its number, so that each
// address is written in one way, and addresses can be compared. Devices report names. A number that
// is no interface's stays.
func nameZone(ip netip.Addr) netip.Addr {
	if ip.Zone() == "" {
		return ip
	}
	index, err := strconv.Atoi(ip.Zone())
	if err != nil {
		return ip
	}
	if _, err := net.InterfaceByName(ip.Zone()); err == nil { // such names are allowed
		return ip
	}
	if i, err := net.InterfaceByIndex(index); err == nil {
		return ip.WithZone(i.Name)
	}
	return ip
}

// AddrFrom makes an Addr of an IP address and a port.
func AddrFrom(ip netip.Addr, port uint16) Addr { return Addr{AddrPort: netip.AddrPortFrom(ip, port)} }

// IsZero reports whether a is C's NULL.
func (a Addr) IsZero() bool { return a.IB == nil && a.AddrPort == netip.AddrPort{} }

// IsWildcard reports whether a is 0.0.0.0, :: or the zero GID, with any port or zone.
func (a Addr) IsWildcard() bool {
	if a.IB != nil {
		return a.IB.GID == [16]byte{}
	}
	return a.Addr().WithZone("").IsUnspecified()
}

// Family returns the address family of the sockaddr, FamilyAny for the zero Addr. An IPv4-mapped
// address (::ffff:10.0.0.1) is IPv6.
func (a Addr) Family() Family {
	if a.IB != nil {
		return FamilyIB
	}
	return ipFamily(a.Addr())
}

func ipFamily(ip netip.Addr) Family {
	switch {
	case ip.Is4():
		return FamilyIPv4
	case ip.Is6():
		return FamilyIPv6
	}
	return FamilyAny
}

// Source returns the key under which the connections of the peer at a are counted: its address, or
// for IPv6 its /64 network, because one host can have any number of addresses in that. A link-local
// network (fe80::/10) has many hosts, so there each address counts separately, as does each GID.
func (a Addr) Source() netip.Addr {
	if a.IB != nil {
		return netip.AddrFrom16(a.IB.GID)
	}
	ip := a.Addr().Unmap()
	if ip.Is6() && !ip.IsLinkLocalUnicast() {
		p, _ := ip.WithZone("").Prefix(64) // cannot fail
		return p.Addr()
	}
	return ip
}

// SameFamily reports whether a and b are of one address family.
func (a Addr) SameFamily(b Addr) bool { return a.Family() == b.Family() }

// Port returns the port in host byte order; of an AF_IB address, the low 16 bits of its service id
// (rdma_get_src_port(3)).
func (a Addr) Port() uint16 {
	if a.IB != nil {
		return uint16(a.IB.SID)
	}
	return a.AddrPort.Port()
}

// Equal reports whether a and b are one address; AF_IB addresses are compared by value.
func (a Addr) Equal(b Addr) bool {
	if a.IB != nil && b.IB != nil {
		return *a.IB == *b.IB
	}
	return a == b
}

// clone returns a copy that shares no memory with a.
func (a Addr) clone() Addr {
	if a.IB != nil {
		ib := *a.IB
		a.IB = &ib
	}
	return a
}

// String returns "host:port", "" for the zero Addr.
func (a Addr) String() string {
	switch {
	case a.IB != nil:
		return fmt.Sprintf("[%v]/%#x", netip.AddrFrom16(a.IB.GID), a.IB.SID)
	case a.IsZero():
		return ""
	}
	return a.AddrPort.String()
}

// PortSpace is enum rdma_port_space.
type PortSpace uint16

// The port spaces. TCP is the default everywhere: the zero PortSpace means TCP.
const (
	PortSpaceIPOIB PortSpace = 0x0002 // RDMA_PS_IPOIB: datagrams
	PortSpaceTCP   PortSpace = 0x0106 // RDMA_PS_TCP: reliable connections
	PortSpaceUDP   PortSpace = 0x0111 // RDMA_PS_UDP: datagrams
	PortSpaceIB    PortSpace = 0x013F // RDMA_PS_IB
)

// Datagram reports whether all identifiers of this port space exchange datagrams (UD). Those of
// PortSpaceIB may: see ID.Datagram.
func (ps PortSpace) Datagram() bool { return ps == PortSpaceUDP || ps == PortSpaceIPOIB }

var portSpaceNames = map[PortSpace]string{
	0: "TCP", PortSpaceIPOIB: "IPOIB", PortSpaceTCP: "TCP", PortSpaceUDP: "UDP", PortSpaceIB: "IB",
}

// String is librdmacm's name without RDMA_PS_.
func (ps PortSpace) String() string { return enum.Name(portSpaceNames, ps, "PortSpace(%#x)") }

// MarshalText is String's text.
func (ps PortSpace) MarshalText() ([]byte, error) { return []byte(ps.String()), nil }

// Family is an address family in Linux's numbering.
type Family uint16

// The families.
const (
	FamilyAny  Family = 0
	FamilyIPv4 Family = 2
	FamilyIPv6 Family = 10
	FamilyIB   Family = 27
)

var familyNames = map[Family]string{FamilyAny: "any", FamilyIPv4: "IPv4", FamilyIPv6: "IPv6", FamilyIB: "IB"}

// String is the family's name.
func (f Family) String() string { return enum.Name(familyNames, f, "Family(%d)") }

// MarshalText is String's text.
func (f Family) MarshalText() ([]byte, error) { return []byte(f.String()), nil }
