package network

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// portTries is how many ephemeral ports are tried at random before all are tried in order.
const portTries = 8

// bind is bind(2).
func (s *sock) bind(to netip.AddrPort) error {
	ip := to.Addr()
	switch {
	case s.state != stateClosed || s.local.Port() != 0:
		return unix.EINVAL
	case !ip.IsUnspecified() && !s.m.has(ip) && !ip.IsMulticast() && !s.m.broadcast(ip):
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
	if s.conflict(share) {
		return unix.EADDRINUSE
	}
	s.claim()
	return nil
}

// conflict says whether another socket keeps s from its port.
func (s *sock) conflict(share bool) bool {
	if s.dgram {
		return false
	}
	for _, o := range s.m.ports[s.local.Port()] {
		shared := share && s.options.reuse && o.options.reuse && o.state != stateListen
		if o != s && overlap(s, o) && !shared {
			return true
		}
	}
	s.m.waits.expire(s.m.now())
	for _, w := range s.m.waits.order {
		shared := share && s.options.reuse && w.s.options.reuse
		if !w.gone && w.s.local.Port() == s.local.Port() && overlap(s, w.s) && !shared {
			return true
		}
	}
	return false
}

// overlap says whether the addresses of two sockets have one in common.
func overlap(a, b *sock) bool {
	x, y := a.local.Addr(), b.local.Addr()
	if x.Is4() && y.Is4() {
		return x == y || x.IsUnspecified() || y.IsUnspecified()
	}
	return a.anyOf(y) || b.anyOf(x) || x == y
}

// anyOf says whether an IPv6 socket is bound to all addresses, ip included.
func (s *sock) anyOf(ip netip.Addr) bool {
	own := s.local.Addr()
	return own.Is6() && own.IsUnspecified() && (!s.options.v6only || ip.Is6())
}

// claim puts s into the table of ports.
func (s *sock) claim() {
	if !s.claims && !s.dgram {
		s.claims = true
		port := s.local.Port()
		s.m.ports[port] = append(s.m.ports[port], s)
	}
}

// unclaim gives the port back.
func (s *sock) unclaim() {
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

// listen is listen(2).
func (s *sock) listen(backlog int) error {
	switch {
	case s.dgram:
		return unix.EOPNOTSUPP
	case s.state == stateListen:
		s.backlog = max(backlog, 0)
		return nil
	case s.state != stateClosed || s.connecting:
		return unix.EINVAL
	}
	if s.local.Port() == 0 || !s.claims {
		if err := s.takePort(s.local.Port()); err != nil {
			return err
		}
	} else if s.conflict(true) {
		return unix.EADDRINUSE
	}
	s.state, s.backlog = stateListen, max(backlog, 0)
	s.rdShut, s.wrShut = false, false
	return nil
}

// accept is accept4(2), but for the descriptor.
func (s *sock) accept() (*sock, error) {
	switch {
	case s.dgram:
		return nil, unix.EOPNOTSUPP
	case s.state != stateListen:
		return nil, unix.EINVAL
	case len(s.accepts) == 0:
		return nil, unix.EAGAIN
	}
	c := s.accepts[0]
	s.accepts = slices.Delete(s.accepts, 0, 1)
	c.parent = nil
	return c, nil
}

// connect is connect(2).
func (s *sock) connect(to netip.AddrPort) error {
	switch {
	case s.state == stateSynSent:
		return unix.EALREADY
	case s.state != stateClosed:
		return unix.EISCONN
	case s.connecting:
		s.connecting = false
		if err := s.takeError(); err != nil {
			return err
		}
		return unix.ECONNABORTED
	}
	to, from, err := s.route(to)
	if err != nil {
		return err
	}
	old := s.local
	s.local = netip.AddrPortFrom(from, old.Port())
	if old.Port() == 0 || !s.claims {
		if err := s.takePort(old.Port()); err != nil {
			s.local = old
			return err
		}
	}
	before := s.remote
	s.remote = to
	t := s.tuple()
	if s.m.conns[t] != nil {
		s.remote = before
		if s.local = netip.AddrPortFrom(old.Addr(), s.local.Port()); old.Port() == 0 {
			s.unclaim()
			s.local = old
		}
		return unix.EADDRNOTAVAIL
	}
	if w := s.m.waits.find(t, s.m.now()); w != nil { // timestamps distinguish the new connection from the old one
		s.m.waits.end(w)
	}
	s.dial()
	return unix.EINPROGRESS
}

// dial sends the SYN.
func (s *sock) dial() {
	n := s.m.net
	dst := s.m
	if !s.m.has(s.remote.Addr()) {
		dst = n.owners[s.remote.Addr().WithZone("")]
	}
	s.mss = defaultMSS
	if dst != nil {
		s.mss = min(n.Link(s.m, dst).MSS, n.Link(dst, s.m).MSS)
	}
	n.conns++
	s.conn = n.conns
	s.flow.drop()
	s.state, s.err, s.connecting = stateSynSent, 0, true
	s.rdShut, s.wrShut, s.finished = false, false, false
	s.out = sender{size: s.out.size}
	s.in = receiver{size: s.in.size}
	s.began, s.heard, s.tries, s.probes = s.m.now(), s.m.now(), 0, 0
	s.m.conns[s.tuple()] = s
	s.flow.push(segment{kind: kindSyn})
	s.arm()
}

// route returns the peer's address, with the machine's own for a wildcard, and the source to it.
func (s *sock) route(to netip.AddrPort) (netip.AddrPort, netip.Addr, error) {
	ip := to.Addr()
	switch {
	case ip == netip.IPv4Unspecified():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip == netip.IPv6Unspecified():
		ip = netip.IPv6Loopback()
	}
	own := s.local.Addr()
	switch {
	case !s.dgram && (ip.IsMulticast() || s.m.broadcast(ip)):
		return to, own, unix.ENETUNREACH
	case s.m.broadcast(ip):
		return to, own, unix.EACCES
	case s.domain == unix.AF_INET6 && ip.Is4() && (s.options.v6only || own.Is6() && !own.IsUnspecified()):
		return to, own, unix.ENETUNREACH
	case ip.Is6() && own.Is4(): // an IPv6 socket that is bound to a mapped address
		return to, own, unix.EAFNOSUPPORT
	}
	from, err := s.m.source(own, ip)
	return netip.AddrPortFrom(ip, to.Port()), from, err
}
