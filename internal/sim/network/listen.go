package network

import (
	"slices"

	"golang.org/x/sys/unix"
)

// listen implements listen(2).
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
	} else if s.hasConflict(true) {
		return unix.EADDRINUSE
	}
	s.state, s.backlog = stateListen, max(backlog, 0)
	s.rdShut, s.wrShut = false, false
	return nil
}

// accept implements accept4(2), except for the descriptor.
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

// completeHandshake ends the handshake of a request. It returns false if there is no room in the
// accept queue.
func (s *sock) completeHandshake() bool {
	if l := s.parent; l != nil {
		if len(l.accepts) > l.backlog {
			return false
		}
		l.requests = slices.DeleteFunc(l.requests, func(o *sock) bool { return o == s })
		l.accepts = append(l.accepts, s)
	}
	s.state, s.began, s.tries = stateEstablished, s.m.now(), 0
	return true
}

// removeRequest removes a request that has ended. A connection in the accept queue stays there,
// because accept(2) returns it nevertheless.
func (s *sock) removeRequest(child *sock) {
	s.requests = slices.DeleteFunc(s.requests, func(o *sock) bool { return o == child })
}

// findListener finds the listener for a connection: one with exactly that address first.
func (m *Machine) findListener(t tuple) (best *sock) {
	score := 0
	for _, s := range m.ports[t.local.Port()] {
		if s.state != stateListen {
			continue
		}
		a, to := s.local.Addr().WithZone(""), t.local.Addr()
		sc := 0
		switch {
		case a == to:
			sc = 3
		case a.IsUnspecified() && a.Is4() == to.Is4():
			sc = 2
		case a.IsUnspecified() && to.Is4() && !s.options.v6only:
			sc = 1
		}
		if sc > score {
			best, score = s, sc
		}
	}
	return best
}
