package network

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// connect implements connect(2).
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
	to, from, err := s.routeTo(to)
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
			s.releasePort()
			s.local = old
		}
		return unix.EADDRNOTAVAIL
	}
	if w := s.m.waits.find(t, s.m.now()); w != nil {
		// Timestamps distinguish the new connection from the old one.
		s.m.waits.removeEntry(w)
	}
	s.sendSYN()
	return unix.EINPROGRESS
}

// sendSYN sends the SYN.
func (s *sock) sendSYN() {
	n := s.m.net
	s.mss = defaultMSS
	if dst := s.m.machineAt(s.remote.Addr()); dst != nil {
		s.mss = min(n.Link(s.m, dst).MSS, n.Link(dst, s.m).MSS)
	}
	n.conns++
	s.conn = n.conns
	s.chooseDestination()
	s.flow.dropAll()
	s.state, s.err, s.connecting = stateSynSent, 0, true
	s.rdShut, s.wrShut, s.finished = false, false, false
	s.out = sender{size: s.out.size}
	s.in = receiver{size: s.in.size}
	s.began, s.heard, s.tries, s.probes = s.m.now(), s.m.now(), 0, 0
	s.m.conns[s.tuple()] = s
	s.flow.sendSegment(segment{kind: kindSyn})
	s.armTimer()
}

// setDatagramPeer implements connect(2) of a datagram socket: it asks the routing table.
func (s *sock) setDatagramPeer(to netip.AddrPort) error {
	to, from, err := s.routeTo(to)
	if err != nil {
		return err
	}
	s.remote = to
	s.local = netip.AddrPortFrom(from, s.local.Port())
	if s.local.Port() == 0 {
		return s.takePort(0)
	}
	return nil
}

// clearDatagramPeer removes a datagram socket's peer, and the address and port that bind(2) did not
// set.
func (s *sock) clearDatagramPeer() {
	ip, port := s.local.Addr(), s.local.Port()
	if !s.ownAddr {
		ip = wildcardAddr(s.domain)
	}
	if !s.ownPort {
		port = 0
	}
	s.local, s.remote = netip.AddrPortFrom(ip, port), netip.AddrPort{}
}
