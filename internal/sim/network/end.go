package network

import "golang.org/x/sys/unix"

// done ends the connection. An open descriptor stays.
func (s *sock) done() {
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
		s.parent.forget(s)
	}
	if !s.ownPort || s.closed {
		s.unclaim()
	}
}

// reset handles a reset from the peer.
func (s *sock) reset() {
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
	s.flow.drop()
	s.done()
}

// abort ends the connection with a reset to the peer.
func (s *sock) abort() {
	if s.live() || s.state == stateSynReceived {
		s.flow.push(segment{kind: kindReset})
	} else {
		s.flow.drop()
	}
	s.done()
}

// unlisten ends a listener and the connections that it has not accepted.
func (s *sock) unlisten() {
	accepts, requests := s.accepts, s.requests
	s.accepts, s.requests = nil, nil
	for _, c := range requests {
		c.parent = nil
		c.flow.drop()
		c.closed = true
		c.done()
	}
	for _, c := range accepts {
		c.parent = nil
		c.closed = true
		c.abort()
	}
	s.state = stateClosed
	if s.closed || !s.ownPort {
		s.unclaim()
	}
}

// wait replaces the connection by a timeWait.
func (s *sock) wait(half bool) {
	s.done()
	s.m.waits.add(s, half, s.m.now())
}
