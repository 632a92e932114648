package network

import "net/netip"

// Flow is one direction of a connection. Conn is different for each attempt to connect.
type Flow struct {
	Conn     uint64
	From, To netip.AddrPort
}

// Path is an observer between the machines that sees the bytes of all connections.
type Path interface {
	// Meet is called when a connection starts, and returns its destination. That is f.To, or
	// another address, if it is relayed. Both ends see the addresses that they would see otherwise.
	Meet(f Flow) netip.AddrPort
	// Pass gets bytes in order, and returns the bytes that arrive instead. TCP does not notice any
	// change. b is not kept.
	Pass(f Flow, b []byte) []byte
	// End is called after the last bytes, and returns the bytes that arrive before the end.
	End(f Flow) []byte
}

// OnPath puts p between the machines. It does not see loopback traffic.
func (n *Network) OnPath(p Path) { n.between = p }

// chooseDestination lets the Path choose the destination of a new connection.
func (s *sock) chooseDestination() {
	s.realPeer, s.knownAs = netip.AddrPort{}, netip.AddrPort{}
	if p := s.m.net.between; p != nil && !s.m.hasAddr(s.remote.Addr()) {
		if to := p.Meet(Flow{s.conn, s.local, s.remote}); to != s.remote {
			s.realPeer = to
		}
	}
}

// destAddr returns the address to which segments go.
func (s *sock) destAddr() netip.Addr {
	if s.realPeer.IsValid() {
		return s.realPeer.Addr()
	}
	return s.remote.Addr()
}

// peerTuple returns the key of the connection at the peer.
func (s *sock) peerTuple() tuple {
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

// throughPath passes the received bytes of a socket through the Path, and returns the bytes that
// arrive.
func (s *sock) throughPath(seg segment) []byte {
	p := s.m.net.between
	if p == nil || s.m.hasAddr(s.remote.Addr()) || s.middlebox {
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
