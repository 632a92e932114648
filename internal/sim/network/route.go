package network

import (
	"encoding/binary"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"
)

// machineAt returns the machine that has address ip from m's point of view, or nil.
func (m *Machine) machineAt(ip netip.Addr) *Machine {
	if m.hasAddr(ip) {
		return m
	}
	return m.net.owners[ip.WithZone("")]
}

// machineReached returns the machine that a segment from one address of m to another address
// reaches, or nil.
func (n *Network) machineReached(m *Machine, from, to netip.Addr) *Machine {
	dst := m.machineAt(to)
	if m.off || dst == nil || dst.off || !m.hasAddr(from) || n.Link(m, dst).Down || dst != m && from.IsLoopback() {
		return nil
	}
	return dst
}

// isUnreachable reports whether the machine's network knows that no machine has the peer's address.
func (s *sock) isUnreachable() bool {
	dst := s.m.machineAt(s.destAddr())
	return dst == nil || dst.off
}

// routeTo returns the peer's address, with the machine's address in place of a wildcard, and the
// source for it.
func (s *sock) routeTo(to netip.AddrPort) (netip.AddrPort, netip.Addr, error) {
	ip := to.Addr()
	switch {
	case ip == netip.IPv4Unspecified():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip == netip.IPv6Unspecified():
		ip = netip.IPv6Loopback()
	}
	own := s.local.Addr()
	switch {
	case !s.dgram && (ip.IsMulticast() || s.m.isBroadcast(ip)):
		return to, own, unix.ENETUNREACH
	case s.m.isBroadcast(ip):
		return to, own, unix.EACCES
	case s.domain == unix.AF_INET6 && ip.Is4() && (s.options.v6only || own.Is6() && !own.IsUnspecified()):
		return to, own, unix.ENETUNREACH
	case ip.Is6() && own.Is4(): // an IPv6 socket bound to a mapped address
		return to, own, unix.EAFNOSUPPORT
	}
	from, err := s.m.sourceFor(own, ip)
	return netip.AddrPortFrom(ip, to.Port()), from, err
}

// sourceFor returns the source address towards to. from is the socket's address, or unspecified.
// IPv6 lets a socket keep an address from which nothing arrives.
func (m *Machine) sourceFor(from, to netip.Addr) (netip.Addr, error) {
	chosen := !from.IsUnspecified()
	own := m.hasAddr(to)
	best, routed := m.nearestAddr(to)
	switch {
	case !own && !routed:
		return netip.Addr{}, unix.ENETUNREACH
	case chosen && to.Is4() && !m.hasAddr(from):
		return netip.Addr{}, unix.ENETUNREACH
	case chosen && to.Is4() && !own && from.IsLoopback():
		return netip.Addr{}, unix.EINVAL
	case chosen:
		return from, nil
	case own && to.Is6():
		return to, nil
	case to.IsLoopback():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	return best.WithZone(to.Zone()), nil
}

// nearestAddr returns the machine's first address in the smallest of its networks that contains ip.
func (m *Machine) nearestAddr(ip netip.Addr) (netip.Addr, bool) {
	var best netip.Prefix
	for _, p := range m.addrs {
		if p.Contains(ip.WithZone("")) && (!best.IsValid() || p.Bits() > best.Bits()) {
			best = p
		}
	}
	return best.Addr(), best.IsValid()
}

// isBroadcast reports whether ip is the broadcast address of one of the machine's networks.
func (m *Machine) isBroadcast(ip netip.Addr) bool {
	if !ip.Is4() {
		return false
	}
	b := ip.As4()
	v := binary.BigEndian.Uint32(b[:])
	if v == math.MaxUint32 || v == 0x7fffffff {
		return true
	}
	for _, p := range m.addrs {
		if p.Addr().Is4() && p.Bits() < 31 && p.Contains(ip) {
			if host := uint32(1)<<(32-p.Bits()) - 1; v&host == host {
				return true
			}
		}
	}
	return false
}
