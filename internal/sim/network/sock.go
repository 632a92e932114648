package network

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// state is TCP's state. TIME_WAIT is not a socket's state: see timeWait.
type state uint8

const (
	stateClosed state = iota // not yet connected, or no longer
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

// sock is a socket. It outlives close(2) while TCP has something to do.
type sock struct {
	m       *Machine
	domain  int
	dgram   bool
	options options

	local, remote netip.AddrPort // IPv4 addresses are not mapped
	ownAddr       bool           // bind(2) was given a specific address
	ownPort       bool           // bind(2) has assigned a port
	claims        bool           // it is in the machine's table of ports

	// For a relayed connection: the real peer of the connecting side, and, at the other side, the
	// address that was dialled. Neither side knows of it.
	realPeer, knownAs netip.AddrPort

	state      state
	conn       uint64 // number of the attempt to connect; the same at both ends
	peer       *sock  // of the last attempt; nil: not yet answered
	mss        int
	err        unix.Errno // SO_ERROR
	rdShut     bool       // nothing more is read, except queued bytes
	wrShut     bool       // nothing more may be written
	finished   bool       // the peer's FIN has arrived
	connecting bool       // connect(2) has not returned the outcome
	closed     bool       // close(2) was called
	middlebox  bool       // it belongs to the middlebox, not to a process

	out sender
	in  receiver

	backlog  int     // of a listener
	accepts  []*sock // of a listener: established but not accepted
	requests []*sock // of a listener: in their handshake
	parent   *sock   // of a socket in one of these lists: the listener

	began  time.Time // start of the handshake or of the wait for an acknowledgement
	heard  time.Time // when the peer was last heard from
	tries  int       // since began
	probes int       // keepalives without an answer

	flow  flow
	timer timer
}

// options are those set by setsockopt(2) that accepted sockets inherit.
type options struct {
	reuse        bool
	keepAlive    bool
	v6only       bool
	noDelay      bool
	quickAck     bool
	linger       bool
	lingerFor    time.Duration
	userTimeout  time.Duration
	keepIdle     time.Duration
	keepInterval time.Duration
	keepCount    int
	tos, class   int
	sndbuf       int // 0: drawn for each socket
	rcvbuf       int
}

// tuple identifies a machine's connection. The addresses have no zones, and IPv4 addresses are not
// mapped.
type tuple struct{ local, remote netip.AddrPort }

// newSock makes a socket without a descriptor.
func (m *Machine) newSock(domain int, dgram bool) *sock {
	s := &sock{m: m, domain: domain, dgram: dgram, mss: 536}
	s.options = options{keepIdle: 2 * time.Hour, keepInterval: 75 * time.Second, keepCount: 9}
	s.flow = flow{event: m.net.agenda.newEvent(&s.flow), s: s}
	s.timer = timer{event: m.net.agenda.newEvent(&s.timer), s: s}
	s.local = netip.AddrPortFrom(wildcardAddr(domain), 0)
	if !dgram {
		s.out.size, s.in.size = m.net.drawBufferSize(), m.net.drawBufferSize()
	}
	return s
}

// wildcardAddr returns the address of an unbound socket.
func wildcardAddr(domain int) netip.Addr {
	if domain == unix.AF_INET6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

func (s *sock) String() string {
	if s.dgram {
		return fmt.Sprintf("datagram socket at %v", s.local)
	}
	return fmt.Sprintf("%v, %v", arrowText(s.local, s.remote), s.state)
}

// tuple returns the key of the connection.
func (s *sock) tuple() tuple {
	return tuple{
		netip.AddrPortFrom(s.local.Addr().WithZone(""), s.local.Port()),
		netip.AddrPortFrom(s.remote.Addr().WithZone(""), s.remote.Port()),
	}
}

// isLive reports whether a connection exists and its handshake is over.
func (s *sock) isLive() bool { return s.state >= stateEstablished }

// readyEvents implements Linux's tcp_poll.
func (s *sock) readyEvents() (ev eventloop.Events) {
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
		if s.wrShut || s.out.isWritable() {
			ev |= eventloop.Writable
		}
	}
	if s.err != 0 {
		ev |= eventloop.Error
	}
	return ev
}

// takeError implements SO_ERROR: it returns the error and clears it.
func (s *sock) takeError() error {
	if s.err == 0 {
		return nil
	}
	err := s.err
	s.err = 0
	return err
}

func arrowText(from, to netip.AddrPort) string { return fmt.Sprintf("%v > %v", from, to) }
