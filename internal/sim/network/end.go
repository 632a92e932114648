package network

import "golang.org/x/sys/unix"

// closeConnection ends the connection. An open descriptor stays.
func (s *sock) closeConnection() {
	if s.state == stateClosed {
		return
	}
	if t := s.tuple(); s.m.conns[t] == s {
		delete(s.m.conns, t)
	}
	s.state, s.rdShut, s.wrShut = stateClosed, true, true
	s.out.bytes.clear()
	s.m.net.agenda.stop(&s.timer.event)
	if s.parent != nil {
		s.parent.removeRequest(s)
	}
	if !s.ownPort || s.closed {
		s.releasePort()
	}
}

// handleReset handles a reset from the peer.
func (s *sock) handleReset() {
	switch s.state {
	case stateClosed, stateListen:
		return
	case stateSynSent:
		s.err = unix.ECONNREFUSED
	case stateCloseWait:
		s.err = unix.EPIPE
	default:
		s.err = unix.ECONNRESET
	}
	s.flow.dropAll()
	s.closeConnection()
}

// abort ends the connection with a reset to the peer.
func (s *sock) abort() {
	if s.isLive() || s.state == stateSynReceived {
		s.flow.sendSegment(segment{kind: kindReset})
	} else {
		s.flow.dropAll()
	}
	s.closeConnection()
}

// closeListener ends a listener and the connections that it has not accepted.
func (s *sock) closeListener() {
	accepts, requests := s.accepts, s.requests
	s.accepts, s.requests = nil, nil
	for _, c := range requests {
		c.parent = nil
		c.flow.dropAll()
		c.closed = true
		c.closeConnection()
	}
	for _, c := range accepts {
		c.parent = nil
		c.closed = true
		c.abort()
	}
	s.state = stateClosed
	if s.closed || !s.ownPort {
		s.releasePort()
	}
}

// enterTimeWait replaces the connection by a timeWait.
func (s *sock) enterTimeWait(half bool) {
	s.closeConnection()
	s.m.waits.add(s, half, s.m.now())
}
