package network

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// state is TCP's. TIME_WAIT is not one of a socket: see timeWait.
type state uint8

const (
	stateClosed state = iota // not connected yet, or not any more
	stateListen
	stateSynSent
	stateSynReceived
	stateEstablished
	stateFinWait1
	stateFinWait2
	stateClosing
	stateCloseWait
	stateLastAck
)

var stateNames = [...]string{
	"closed", "listen", "syn-sent", "syn-received", "established", "fin-wait-1", "fin-wait-2", "closing", "close-wait", "last-ack",
}

func (st state) String() string { return stateNames[st] }

// sock is a socket. It lives on after close(2) while TCP has something to do.
type sock struct {
	m       *Machine
	domain  int
	dgram   bool
	options options

	local, remote netip.AddrPort // IPv4 addresses are not mapped
	ownAddr       bool           // bind(2) was given a specific address
	ownPort       bool           // bind(2) has got a port
	claims        bool           // it is in the machine's table of ports

	state      state
	conn       uint64 // of the attempt to connect; the same at both ends
	peer       *sock  // of the newest attempt; nil: it has not been answered
	mss        int
	err        unix.Errno // SO_ERROR
	rdShut     bool       // nothing more is read, except what is there
	wrShut     bool       // nothing more may be written
	finished   bool       // the peer's FIN has come
	connecting bool       // connect(2) has not returned the outcome
	closed     bool       // by close(2)
	middlebox  bool       // it belongs to no process, but to the middlebox

	out sender
	in  receiver

	backlog  int     // of a listener
	accepts  []*sock // of a listener: established, and not accepted yet
	requests []*sock // of a listener: whose handshake is under way
	parent   *sock   // of one that is in such a list

	began  time.Time // when the handshake or the wait for an acknowledgement began
	heard  time.Time // when the peer was last heard of
	tries  int       // since began
	probes int       // keepalives without an answer

	flow  flow
	timer timer
}

func (m *Machine) sock(domain int, dgram bool) *sock {
	s := &sock{m: m, domain: domain, dgram: dgram, mss: 536}
	s.options = options{keepIdle: 2 * time.Hour, keepInterval: 75 * time.Second, keepCount: 9}
	s.flow = flow{event: m.net.agenda.event(&s.flow), s: s}
	s.timer = timer{event: m.net.agenda.event(&s.timer), s: s}
	any := netip.IPv4Unspecified()
	if domain == unix.AF_INET6 {
		any = netip.IPv6Unspecified()
	}
	s.local = netip.AddrPortFrom(any, 0)
	if !dgram {
		s.out.size, s.in.size = m.net.buffer(), m.net.buffer()
	}
	return s
}

func (s *sock) String() string {
	if s.dgram {
		return fmt.Sprintf("datagram socket at %v", s.local)
	}
	return fmt.Sprintf("%v, %v", arrow(s.local, s.remote), s.state)
}

// tuple is the key of the connection.
func (s *sock) tuple() tuple {
	return tuple{
		netip.AddrPortFrom(s.local.Addr().WithZone(""), s.local.Port()),
		netip.AddrPortFrom(s.remote.Addr().WithZone(""), s.remote.Port()),
	}
}

// live says whether a connection exists and its handshake is over.
func (s *sock) live() bool { return s.state >= stateEstablished }

// ready is Linux's tcp_poll.
func (s *sock) ready() (ev eventloop.Events) {
	switch {
	case s.dgram:
		return eventloop.Writable
	case s.state == stateListen:
		if len(s.accepts) > 0 {
			ev = eventloop.Readable
		}
		return ev
	}
	if s.rdShut && s.wrShut || s.state == stateClosed {
		ev |= eventloop.Hangup
	}
	if s.rdShut {
		ev |= eventloop.Readable
	}
	if s.state != stateSynSent {
		if s.in.bytes.len() > 0 {
			ev |= eventloop.Readable
		}
		if s.wrShut || s.out.roomy() {
			ev |= eventloop.Writable
		}
	}
	if s.err != 0 {
		ev |= eventloop.Error
	}
	return ev
}

// takeError is SO_ERROR: the error, which is then forgotten.
func (s *sock) takeError() error {
	if s.err == 0 {
		return nil
	}
	err := s.err
	s.err = 0
	return err
}

// vanish ends a socket of a machine that was switched off.
func (s *sock) vanish() {
	s.flow.drop()
	s.m.net.agenda.stop(&s.timer.event)
	s.state, s.claims, s.closed = stateClosed, false, true
}

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

// reset is what a reset from the peer does.
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

// close is close(2), after the descriptor was released.
func (s *sock) close() {
	s.closed = true
	switch {
	case s.dgram, s.state == stateClosed:
		s.unclaim()
	case s.state == stateListen:
		s.unlisten()
	case s.state == stateSynSent, s.options.linger && s.options.lingerFor == 0, s.in.bytes.len() > 0:
		s.in.bytes.clear()
		s.abort()
	default:
		s.in.bytes.clear()
		s.rdShut = true
		s.finish()
		s.orphan()
	}
}

// shutdown is shutdown(2).
func (s *sock) shutdown(how int) error {
	if how < unix.SHUT_RD || how > unix.SHUT_RDWR {
		return unix.EINVAL
	}
	rd, wr := how != unix.SHUT_WR, how != unix.SHUT_RD
	switch s.state {
	case stateListen:
		if rd {
			s.unlisten()
		}
		return nil
	case stateSynSent:
		s.abort()
		s.rdShut, s.wrShut = false, false
		return nil
	}
	s.rdShut = s.rdShut || rd
	if wr {
		s.finish()
	}
	if s.state == stateClosed {
		s.wrShut = s.wrShut || wr
		return unix.ENOTCONN
	}
	return nil
}

// finish queues a FIN behind what was written.
func (s *sock) finish() {
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
	s.transmit()
}

// finAcked is called when the peer has our FIN.
func (s *sock) finAcked() {
	switch s.state {
	case stateFinWait1:
		s.state = stateFinWait2
		s.orphan()
	case stateClosing:
		s.wait(false)
	case stateLastAck:
		s.done()
	}
}

// finCame is called when the peer's FIN has come.
func (s *sock) finCame() {
	s.rdShut, s.finished = true, true
	switch s.state {
	case stateEstablished:
		s.state = stateCloseWait
	case stateFinWait1:
		s.state = stateClosing
	case stateFinWait2:
		s.wait(false)
	}
}

// orphan lets a closed socket go that has only the peer's FIN to wait for.
func (s *sock) orphan() {
	if s.closed && s.state == stateFinWait2 {
		s.wait(true)
	}
}

// wait leaves the connection to a timeWait.
func (s *sock) wait(half bool) {
	s.done()
	s.m.waits.add(s, half, s.m.now())
}
