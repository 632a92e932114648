package network

import "golang.org/x/sys/unix"

// happen probes the peer, or gives up the connection.
func (t *timer) happen() string {
	s := t.s
	line := arrowText(s.local, s.remote)
	if now := s.m.now(); !now.Before(s.giveUp()) {
		return line + s.timeOut()
	}
	switch {
	case s.state == stateSynSent:
		if s.isUnreachable() {
			s.err = unix.EHOSTUNREACH
			s.abort()
			return line + " host unreachable"
		}
		s.tries++
		s.armTimer()
		return line + " has found the host"
	case t.why == whyAlive:
		s.probes++
		line += " keepalive"
	default:
		s.tries++
		line += " probe"
	}
	if s.flow.segs.Len() == 0 { // otherwise the flow tries again
		line += s.probePeer()
	}
	s.armTimer()
	return line
}

// timeOut gives up the connection.
func (s *sock) timeOut() string {
	if s.state != stateSynReceived {
		s.err = unix.ETIMEDOUT
	}
	if s.timer.why == whyAlive || s.closed {
		s.abort()
	} else {
		s.flow.dropAll()
		s.closeConnection()
	}
	return " times out"
}

// probePeer asks the peer what it has received, and gets the answer immediately.
func (s *sock) probePeer() string {
	n := s.m.net
	dst := n.machineReached(s.m, s.local.Addr(), s.destAddr())
	if dst == nil {
		return " lost"
	}
	back := n.machineReached(dst, s.destAddr(), s.local.Addr()) == s.m
	t := s.peerTuple()
	peer := dst.conns[t]
	if peer == nil || peer.conn != s.conn {
		peer = nil
		if w := dst.waits.find(t, dst.now()); w != nil && w.s.conn == s.conn {
			if peer = w.s; w.half && s.out.dataTo() > peer.in.next { // it will never be read
				dst.waits.removeEntry(w)
				peer = nil
			}
		}
	}
	switch {
	case peer == nil:
		if back {
			s.handleReset()
			return " refused"
		}
		return " lost"
	case peer.state == stateSynReceived && !peer.completeHandshake(), peer.state == stateSynSent:
		return " dropped"
	}
	peer.heard, peer.probes = s.m.now(), 0
	peer.handleAcked(s)
	if !back {
		return " not answered"
	}
	s.heard, s.probes = s.m.now(), 0
	if s.state == stateSynReceived && !s.completeHandshake() {
		return " dropped, accept queue full"
	}
	s.handleAcked(peer)
	return " answered"
}
