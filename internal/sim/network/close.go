package network

import "golang.org/x/sys/unix"

// close implements close(2), after the descriptor was released.
func (s *sock) close() {
	s.closed = true
	switch {
	case s.dgram, s.state == stateClosed:
		s.releasePort()
	case s.state == stateListen:
		s.closeListener()
	case s.state == stateSynSent, s.options.linger && s.options.lingerFor == 0, s.in.bytes.len() > 0:
		s.in.bytes.clear()
		s.abort()
	default:
		s.in.bytes.clear()
		s.rdShut = true
		s.queueFIN()
		s.closeOrphan()
	}
}

// shutdown implements shutdown(2).
func (s *sock) shutdown(how int) error {
	if how < unix.SHUT_RD || how > unix.SHUT_RDWR {
		return unix.EINVAL
	}
	rd, wr := how != unix.SHUT_WR, how != unix.SHUT_RD
	switch s.state {
	case stateListen:
		if rd {
			s.closeListener()
		}
		return nil
	case stateSynSent:
		s.abort()
		s.rdShut, s.wrShut = false, false
		return nil
	}
	s.rdShut = s.rdShut || rd
	if wr {
		s.queueFIN()
	}
	if s.state == stateClosed {
		s.wrShut = s.wrShut || wr
		return unix.ENOTCONN
	}
	return nil
}

// queueFIN queues a FIN after the written bytes.
func (s *sock) queueFIN() {
	if s.wrShut {
		return
	}
	s.wrShut = true
	switch s.state {
	case stateEstablished, stateSynReceived:
		s.state = stateFinWait1
	case stateCloseWait:
		s.state = stateLastAck
	default:
		return
	}
	s.out.fin = true
	s.transmitData()
}

// finAcked is called when the peer has acknowledged this side's FIN.
func (s *sock) finAcked() {
	switch s.state {
	case stateFinWait1:
		s.state = stateFinWait2
		s.closeOrphan()
	case stateClosing:
		s.enterTimeWait(false)
	case stateLastAck:
		s.closeConnection()
	}
}

// finCame is called when the peer's FIN arrives.
func (s *sock) finCame() {
	s.rdShut, s.finished = true, true
	switch s.state {
	case stateEstablished:
		s.state = stateCloseWait
	case stateFinWait1:
		s.state = stateClosing
	case stateFinWait2:
		s.enterTimeWait(false)
	}
}

// closeOrphan ends a closed socket that waits only for the peer's FIN.
func (s *sock) closeOrphan() {
	if s.closed && s.state == stateFinWait2 {
		s.enterTimeWait(true)
	}
}
