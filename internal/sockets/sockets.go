// Package sockets is the embedded device's interface to an operating system: stream sockets, the
// routing table, and random numbers. Package iwarp makes one Stack for each of its instances. It is
// Linux's, or that of a simulated machine.
package sockets

import (
	"golang.org/x/sys/unix"
)

// MaxBuffers is how many slices Send and Readv take. They leave further ones out.
const MaxBuffers = 256

// Stack is the sockets of one machine as one event loop uses them. Everything belongs to that
// loop's goroutine. Nothing blocks. Errors are bare errnos. Meanings are those of the system calls
// in the manual pages that the names refer to.
//
// The sockets themselves belong to the process: they may move to another loop, and then that loop's
// Stack is used for them.
type Stack interface {
	// Socket is socket(2), with SOCK_NONBLOCK and SOCK_CLOEXEC. typ is SOCK_STREAM or SOCK_DGRAM. A
	// datagram socket only asks the routing table.
	Socket(domain, typ int) (fd int, err error)
	Bind(fd int, sa unix.Sockaddr) error
	Listen(fd, backlog int) error
	// Accept is accept4(2), with the flags of Socket. The address is valid until the next call of
	// Accept, Local or Peer. It is nil if it is not an IP address.
	Accept(fd int) (int, unix.Sockaddr, error)
	Connect(fd int, sa unix.Sockaddr) error
	// Disconnect removes a datagram socket's peer, address and port.
	Disconnect(fd int) error
	// Send is sendmsg(2) with MSG_NOSIGNAL: it sends bufs in order, as far as there is room.
	Send(fd int, bufs [][]byte, flags int) (int, error)
	// Recv is recv(2).
	Recv(fd int, b []byte) (int, error)
	// Readv is readv(2).
	Readv(fd int, bufs [][]byte) (int, error)
	Shutdown(fd, how int) error
	Close(fd int) error
	// Local is getsockname(2), and Peer getpeername(2). The address is as Accept's.
	Local(fd int) (unix.Sockaddr, error)
	Peer(fd int) (unix.Sockaddr, error)
	SetOption(fd, level, opt, value int) error
	Option(fd, level, opt int) (int, error)
	// SetLinger is SO_LINGER.
	SetLinger(fd int, l *unix.Linger) error
	// Unacknowledged is SIOCOUTQ: how many bytes are in the send queue, sent ones included.
	Unacknowledged(fd int) (int, error)
	// InterfaceIndex is SIOCGIFINDEX, and InterfaceName SIOCGIFNAME.
	InterfaceIndex(name string) (int, error)
	InterfaceName(index int) (string, error)
	// EphemeralPorts is net.ipv4.ip_local_port_range, which is IPv6's as well: the lowest port, and
	// how many there are.
	EphemeralPorts() (low, n int)
	// ReservedPort reports whether port is in net.ipv4.ip_local_reserved_ports, which is IPv6's as
	// well: bind(2) does not choose it.
	ReservedPort(port int) bool
	// Random fills b with random bytes.
	Random(b []byte)
}
