package cmidtest

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// parsePrefix parses an address with or without a prefix length.
func parsePrefix(s string) netip.Prefix {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p
	}
	a := netip.MustParseAddr(s)
	bits := 64
	if a.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(a, bits)
}

// isAny acts as cma_any_addr: it takes loopback for a wildcard too. As a destination, a
// wildcard or a loopback address means the host itself.
func isAny(ip netip.Addr) bool { return ip.WithZone("").IsUnspecified() || ip.IsLoopback() }

// lacksZone reports whether ip is a link-local address without a zone.
func lacksZone(ip netip.Addr) bool { return ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "" }

// wildcardOf returns the wildcard of ip's family.
func wildcardOf(ip netip.Addr) netip.Addr {
	if ip.Is6() {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// loopbackAddr returns the source for a destination on the host itself.
func loopbackAddr(dst netip.Addr) netip.Addr {
	switch {
	case dst.IsLoopback():
		return dst
	case dst.Is4():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// sourceAddr returns the device's address in ip's subnet.
func (d *device) sourceAddr(ip netip.Addr) (netip.Addr, bool) {
	for _, p := range d.addrs {
		if p.Contains(ip.WithZone("")) {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}

func (h *Host) deviceLocked(name string) *device {
	for _, d := range h.devices {
		if d.name == name {
			return d
		}
	}
	return nil
}

// isPlainLocked reports whether ip is the host's, on an interface without an RDMA device.
func (h *Host) isPlainLocked(ip netip.Addr) bool {
	return slices.ContainsFunc(h.plain, func(p netip.Prefix) bool { return p.Addr() == ip })
}

// ownLocked finds the host's device with the address ip.
func (h *Host) ownLocked(ip netip.Addr) *device {
	if d := h.f.addrs[ip.WithZone("")]; d != nil && d.host == h {
		return d
	}
	return nil
}

// conflictLocked does what cma_check_port does: it returns an error if b must not share its port
// with the bindings that have it.
func (h *Host) conflictLocked(b *binding, reuse bool) error {
	for _, o := range h.ports[b.port] {
		switch {
		case o == b, reuse && o.reuse:
		case o.afOnly && b.afOnly && o.ip.Is4() != b.ip.Is4():
		case isAny(o.ip) || isAny(b.ip):
			return cmid.ErrPortTaken
		case o.ip == b.ip:
			return unix.EADDRINUSE
		}
	}
	return nil
}

// The range from which a port is chosen when a program asks for port 0
// (net.ipv4.ip_local_port_range).
const (
	firstPort, lastPort = 32768, 60999
	privileged          = 1024
)

// freePortLocked chooses an unused port number. It returns 0 if there is none.
func (h *Host) freePortLocked(ps cmid.PortSpace) uint16 {
	const n = lastPort - firstPort + 1
	start := h.f.rng.IntN(n)
	for i := range n {
		num := uint16(firstPort + (start+i)%n)
		if len(h.ports[port{ps, num}]) == 0 {
			return num
		}
	}
	return 0
}

// hearsLocked reports whether the listener with this binding gets a request to ip. A listener on a
// loopback address gets requests to that address only, although rdma_cm takes loopback for a
// wildcard.
func (b *binding) hearsLocked(ip netip.Addr) bool {
	switch {
	case b.ip.Is4() != ip.Is4() && (b.afOnly || !b.ip.IsUnspecified()):
		return false
	case b.ip.IsUnspecified():
		return true
	case b.ip.IsLoopback():
		return ip == b.ip
	}
	return b.ip == ip
}
