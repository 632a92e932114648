package network

import "net/netip"

// Flow is one direction of a connection. Conn is another one for each attempt to connect.
type Flow struct {
	Conn     uint64
	From, To netip.AddrPort
}

// Path is somebody between the machines, who sees the bytes of all connections.
type Path interface {
	// Meet is called when a connection begins, and returns where it is made to. That is f.To, or
	// another place, if it is relayed. Both ends see the addresses that they would see otherwise.
	Meet(f Flow) netip.AddrPort
	// Pass gets bytes in their order, and returns what arrives in their place. TCP does not notice,
	// whatever that is. b is not kept.
	Pass(f Flow, b []byte) []byte
	// End is called when no more come, and returns what arrives before the end.
	End(f Flow) []byte
}

// OnPath puts somebody between the machines. What loopback carries is not seen.
func (n *Network) OnPath(p Path) { n.between = p }

// relay has whoever is on the path choose where a connection that begins is made to.
func (s *sock) relay() {
	s.realPeer, s.knownAs = netip.AddrPort{}, netip.AddrPort{}
	if p := s.m.net.between; p != nil && !s.m.has(s.remote.Addr()) {
		if to := p.Meet(Flow{s.conn, s.local, s.remote}); to != s.remote {
			s.realPeer = to
		}
	}
}

// destination is the address where segments go.
func (s *sock) destination() netip.Addr {
	if s.realPeer.IsValid() {
		return s.realPeer.Addr()
	}
	return s.remote.Addr()
}

// opposite is the key of the connection at the peer.
func (s *sock) opposite() tuple {
	t := s.tuple()
	t.local, t.remote = t.remote, t.local
	if s.realPeer.IsValid() {
		t.local = s.realPeer
	}
	if s.knownAs.IsValid() {
		t.remote = s.knownAs
	}
	return t
}

// along has whoever is on the path see what has come to a socket, and returns what arrives.
func (s *sock) along(seg segment) []byte {
	p := s.m.net.between
	if p == nil || s.m.has(s.remote.Addr()) || s.middlebox {
		return seg.data
	}
	f := Flow{s.conn, s.remote, s.local}
	var b []byte
	if seg.kind == kindFin {
		b = p.End(f)
	} else {
		b = p.Pass(f, seg.data)
	}
	s.in.before += uint64(len(seg.data) - len(b)) // so that the window has room for the same bytes
	return b
}
