package network

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Errnos returns the errnos with which a call may fail on Linux through no fault of its caller. The
// calls are socket, bind, listen, accept, connect, send, recv and setsockopt.
func Errnos(call string) []unix.Errno {
	switch call {
	case "socket":
		return []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM}
	case "bind", "setsockopt":
		return []unix.Errno{unix.ENOMEM, unix.ENOBUFS}
	case "accept":
		return []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, unix.EINTR}
	case "connect":
		return []unix.Errno{unix.ENOBUFS, unix.ENOMEM, unix.EADDRNOTAVAIL}
	case "send":
		return []unix.Errno{unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ENOMEM}
	case "recv":
		return []unix.Errno{unix.EAGAIN, unix.EINTR, unix.ENOMEM}
	}
	return nil
}

// injectFault returns the error of a call that fails through no fault of its caller, if the Config
// makes it fail.
func (m *Machine) injectFault(call string) error {
	if f := m.net.cfg.Fail; f != nil {
		if errno := f(m, call); errno != 0 {
			return errno
		}
	}
	return nil
}

// Connection is one end of a connection.
type Connection struct {
	Local, Peer netip.AddrPort
	sock        *sock
}

// Connections returns the connections of the machine's sockets that are established or being
// closed, sorted.
func (m *Machine) Connections() []Connection {
	var list []Connection
	for t, s := range m.conns {
		if s.state != stateSynSent && s.state != stateSynReceived {
			list = append(list, Connection{t.local, t.remote, s})
		}
	}
	slices.SortFunc(list, func(a, b Connection) int {
		if c := a.Local.Compare(b.Local); c != 0 {
			return c
		}
		return a.Peer.Compare(b.Peer)
	})
	return list
}

// Reset resets this end of the connection, as if a middlebox had sent it a reset. The other end
// notices when it sends something.
func (c Connection) Reset() { c.sock.handleReset() }
