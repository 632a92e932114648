package network

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// portTries is how many ephemeral ports are tried at random before all are tried in order.
const portTries = 8

// bind implements bind(2).
func (s *sock) bind(to netip.AddrPort) error {
	ip := to.Addr()
	switch {
	case s.state != stateClosed || s.local.Port() != 0:
		return unix.EINVAL
	case !ip.IsUnspecified() && !s.m.hasAddr(ip) && !ip.IsMulticast() && !s.m.isBroadcast(ip):
		return unix.EADDRNOTAVAIL
	case ip.Is4() && s.domain == unix.AF_INET6 && s.options.v6only:
		return unix.EINVAL
	}
	old := s.local
	s.local = to
	if err := s.takePort(to.Port()); err != nil {
		s.local = old
		return err
	}
	s.ownAddr, s.ownPort = !ip.IsUnspecified(), true
	return nil
}

// takePort claims a port of the machine; 0 is any.
func (s *sock) takePort(port uint16) error {
	if port != 0 {
		return s.tryPort(port, true)
	}
	cfg := s.m.net.cfg
	start := cfg.Rand.IntN(cfg.Ports)
	for i := range portTries + cfg.Ports {
		if i < portTries && i > 0 {
			start = cfg.Rand.IntN(cfg.Ports)
		}
		port := uint16(cfg.LowPort + (start+max(0, i-portTries))%cfg.Ports)
		if s.tryPort(port, false) == nil {
			return nil
		}
	}
	return unix.EADDRINUSE
}

// tryPort claims a port. If share is set, sockets with SO_REUSEADDR share it.
func (s *sock) tryPort(port uint16, share bool) error {
	s.local = netip.AddrPortFrom(s.local.Addr(), port)
	if s.hasConflict(share) {
		return unix.EADDRINUSE
	}
	s.claimPort()
	return nil
}

// hasConflict reports whether another socket keeps s from its port.
func (s *sock) hasConflict(share bool) bool {
	if s.dgram {
		return false
	}
	for _, o := range s.m.ports[s.local.Port()] {
		shared := share && s.options.reuse && o.options.reuse && o.state != stateListen
		if o != s && addrsOverlap(s, o) && !shared {
			return true
		}
	}
	s.m.waits.removeExpired(s.m.now())
	for _, w := range s.m.waits.order {
		shared := share && s.options.reuse && w.s.options.reuse
		if !w.gone && w.s.local.Port() == s.local.Port() && addrsOverlap(s, w.s) && !shared {
			return true
		}
	}
	return false
}

// addrsOverlap reports whether two sockets have an address in common.
func addrsOverlap(a, b *sock) bool {
	x, y := a.local.Addr(), b.local.Addr()
	if x.Is4() && y.Is4() {
		return x == y || x.IsUnspecified() || y.IsUnspecified()
	}
	return a.anyOf(y) || b.anyOf(x) || x == y
}

// anyOf reports whether an IPv6 socket is bound to all addresses, ip included.
func (s *sock) anyOf(ip netip.Addr) bool {
	own := s.local.Addr()
	return own.Is6() && own.IsUnspecified() && (!s.options.v6only || ip.Is6())
}

// claimPort adds s to the table of ports.
func (s *sock) claimPort() {
	if !s.claims && !s.dgram {
		s.claims = true
		port := s.local.Port()
		s.m.ports[port] = append(s.m.ports[port], s)
	}
}

// releasePort releases the port.
func (s *sock) releasePort() {
	if !s.claims {
		return
	}
	s.claims = false
	port := s.local.Port()
	list := slices.DeleteFunc(s.m.ports[port], func(o *sock) bool { return o == s })
	if len(list) == 0 {
		delete(s.m.ports, port)
		return
	}
	s.m.ports[port] = list
}
