package iwarp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// portTries is how many ports the kernel may offer for port 0 until one is also free among this
// process's identifiers.
const portTries = 16

// bindAddr implements rdma_bind_addr(3): it takes the port, with a socket that does not listen.
func (id *driverID) bindAddr(a cmid.Addr) error {
	if id.binding != nil || id.child {
		return unix.EINVAL
	}
	if err := id.bindLocal(a); err != nil {
		return err
	}
	id.device = !a.IsWildcard()
	return nil
}

// bindLocal takes a's port and sets local.
func (id *driverID) bindLocal(a cmid.Addr) error {
	ip := a.Addr()
	if ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		// bind(2) would take it
		return fmt.Errorf("iwarp: %v is not an address of this host: %w", ip, unix.EADDRNOTAVAIL)
	}
	if a.Port() != 0 { // our own rule first: its errno says more
		return id.bindPort(a, -1)
	}
	var err error
	for range portTries {
		fd, local, sockErr := id.newSocket(a)
		if sockErr != nil {
			return sockErr
		}
		b := &binding{addr: local, reuse: id.reuse, afonly: id.afonly}
		if err = id.in.drv.ports.takePort(b); err == nil {
			id.binding, id.fd, id.local = b, fd, local
			return nil
		}
		id.in.closeFD(fd)
	}
	return err
}

// bindPort takes a's port, which is not 0, with the unbound socket fd, or with a new socket if fd
// is -1. On failure an unbound fd stays with the caller.
func (id *driverID) bindPort(a cmid.Addr, fd int) error {
	b := &binding{addr: a, reuse: id.reuse, afonly: id.afonly}
	if err := id.in.drv.ports.takePort(b); err != nil {
		return err
	}
	local := a
	var err error
	if fd < 0 {
		fd, local, err = id.newSocket(a)
	} else {
		err = id.in.bindSocket(fd, a)
	}
	if err != nil {
		id.in.drv.ports.releasePort(b)
		return err
	}
	id.binding, id.fd, id.local = b, fd, local
	return nil
}

// newSocket makes a TCP socket bound to a, and returns its address with the assigned port.
func (id *driverID) newSocket(a cmid.Addr) (fd int, local cmid.Addr, err error) {
	fd, err = id.unboundSocket(a)
	if err != nil {
		return -1, cmid.Addr{}, err
	}
	if err = id.in.bindSocket(fd, a); err != nil {
		id.in.closeFD(fd)
		return -1, cmid.Addr{}, err
	}
	if a.Port() != 0 {
		return fd, cmid.AddrFrom(a.Addr(), a.Port()), nil
	}
	got, err := id.in.sys.Local(fd)
	if err != nil {
		id.in.closeFD(fd)
		return -1, cmid.Addr{}, fmt.Errorf("iwarp: getsockname: %w", err)
	}
	return fd, cmid.AddrFrom(a.Addr(), id.in.addrOf(got).Port()), nil
}

// unboundSocket makes a TCP socket of a's family with the identifier's options.
func (id *driverID) unboundSocket(a cmid.Addr) (fd int, err error) {
	_, domain, err := id.in.toSockaddr(a)
	if err != nil {
		return -1, err
	}
	fd, err = id.in.sys.Socket(domain, unix.SOCK_STREAM)
	if err != nil {
		return -1, fmt.Errorf("iwarp: socket: %w", err)
	}
	if err = id.setBindOptions(fd, domain); err != nil {
		id.in.closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// setBindOptions sets the options that a socket of the identifier needs before it is bound.
func (id *driverID) setBindOptions(fd, domain int) error {
	if id.reuse || id.auto {
		if err := id.in.shareAddr(fd); err != nil {
			return err
		}
	}
	if domain == unix.AF_INET6 {
		only := 0
		if id.afonly {
			only = 1
		}
		if err := id.in.sys.SetOption(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only); err != nil {
			return fmt.Errorf("iwarp: IPV6_V6ONLY: %w", err)
		}
	}
	if id.hasTOS {
		if err := id.in.setTOS(fd, id.tos); err != nil {
			return fmt.Errorf("iwarp: IP_TOS: %w", err)
		}
	}
	return id.in.setConnOptions(fd)
}

// bindSocket calls bind(2). After a failure the socket may be bound to something else.
func (in *instance) bindSocket(fd int, a cmid.Addr) error {
	sa, _, err := in.toSockaddr(a)
	if err != nil {
		return err
	}
	err = in.sys.Bind(fd, sa)
	if err == unix.EADDRINUSE && a.Port() != 0 { // perhaps only connections in TIME_WAIT
		if err = in.shareAddr(fd); err == nil {
			err = in.sys.Bind(fd, sa)
		}
	}
	if err != nil {
		return fmt.Errorf("iwarp: bind %v: %w", a, err)
	}
	return nil
}

// shareAddr sets SO_REUSEADDR. If both sockets have it, a port can be bound although connections
// in TIME_WAIT use it. A socket that only reserves its port does without as long as it can,
// because any other program that sets the option could bind the port, too.
func (in *instance) shareAddr(fd int) error {
	if err := in.sys.SetOption(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("iwarp: SO_REUSEADDR: %w", err)
	}
	return nil
}

// resolveAddr implements rdma_resolve_addr(3). The routing table determines the source for dst.
// Whether dst answers is only known later, from TCP. An identifier that was not bound is bound
// afterwards, even on failure.
func (id *driverID) resolveAddr(src, dst cmid.Addr) error {
	switch {
	case id.lis != nil || id.conn != nil && id.conn.phase != phIdle:
		return unix.EINVAL
	case !dst.Addr().IsValid():
		return fmt.Errorf("iwarp: destination %q is not an IP address: %w", dst.String(), unix.EINVAL)
	}
	if id.binding == nil && !src.IsZero() {
		if err := id.bindLocal(src); err != nil {
			return err
		}
	}
	from := cmid.Addr{}
	if id.binding != nil {
		from = id.binding.addr
	}
	peer, source, err := id.in.lookUpRoute(from, dst)
	if id.binding == nil {
		err = errors.Join(err, id.bindFor(dst, source))
	}
	if err != nil {
		return err
	}
	id.peer, id.device = peer, true
	id.local = cmid.AddrFrom(source, id.local.Port())
	id.queueEvent(cmid.DriverEvent{Kind: states.KindAddrResolved})
	return nil
}

// bindFor binds to the source of a route, or, without a route, to the wildcard as rdma_cm does. The
// port is chosen here and not by bind(2), and as there it is never one that the operator has
// reserved. On a busy host bind(2) searches for milliseconds among ports in TIME_WAIT. It also
// avoids those ports, although a connection to another address may use them.
func (id *driverID) bindFor(dst cmid.Addr, source netip.Addr) error {
	if !source.IsValid() {
		source = netip.IPv6Unspecified()
		if dst.Family() != cmid.FamilyIPv6 {
			source = netip.IPv4Unspecified()
		}
	}
	id.auto = true
	fd, err := id.unboundSocket(cmid.AddrFrom(source, 0))
	if err != nil {
		return err
	}
	low, n := id.in.sys.EphemeralPorts()
	for range portTries {
		port := low + id.in.randomBelow(n)
		if id.in.sys.ReservedPort(port) {
			continue
		}
		switch err := id.bindPort(cmid.AddrFrom(source, uint16(port)), fd); errnoOf(err) {
		case unix.EADDRINUSE, unix.EADDRNOTAVAIL, unix.EACCES:
			// taken, perhaps by another program's listener
		default:
			if err != nil {
				id.in.closeFD(fd)
			}
			return err
		}
	}
	id.in.closeFD(fd)
	return id.bindLocal(cmid.AddrFrom(source, 0))
}

// randomBelow returns a random number from 0 to n-1. With n up to 2¹⁶ the small numbers are hardly
// more likely than the others.
func (in *instance) randomBelow(n int) int {
	b := in.random[:4]
	in.sys.Random(b)
	return int(binary.NativeEndian.Uint32(b) % uint32(n))
}

// lookUpRoute asks the routing table for the source address towards dst, by connecting a datagram
// socket, which sends nothing. from restricts it when it is specific. A wildcard dst means this
// host.
func (in *instance) lookUpRoute(from, dst cmid.Addr) (peer cmid.Addr, source netip.Addr, err error) {
	ip := dst.Addr()
	switch {
	case !from.IsZero() && !from.SameFamily(dst):
		return peer, source, fmt.Errorf("iwarp: bound to %v, which is of another family than %v: %w", from, dst, unix.EINVAL)
	case ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return peer, source, fmt.Errorf("iwarp: a connection to %v: %w", ip, unix.ENETUNREACH)
	case dst.IsWildcard():
		if dst.Family() == cmid.FamilyIPv4 {
			ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		} else {
			ip = netip.IPv6Loopback()
		}
	}
	peer = cmid.AddrFrom(ip, dst.Port())
	target := peer
	if target.Port() == 0 {
		target = cmid.AddrFrom(ip, 9) // discard: some kernels refuse 0
	}
	to, domain, err := in.toSockaddr(target)
	if err != nil {
		return peer, source, err
	}
	if !from.IsZero() && !from.IsWildcard() {
		source, err = in.routeFrom(from, to, domain)
	} else {
		source, err = in.routeTo(to, domain)
	}
	return peer, source, err
}

// routeFrom looks the route up with a socket that is bound to from.
func (in *instance) routeFrom(from cmid.Addr, to unix.Sockaddr, domain int) (source netip.Addr, err error) {
	sa, _, err := in.toSockaddr(cmid.AddrFrom(from.Addr(), 0))
	if err != nil {
		return source, err
	}
	fd, err := in.newProbeSocket(domain)
	if err != nil {
		return source, err
	}
	defer in.closeFD(fd)
	if err := in.sys.Bind(fd, sa); err != nil {
		return source, fmt.Errorf("iwarp: source %v: %w", from.Addr(), err)
	}
	return in.sourceOf(fd, to)
}

// routeTo looks the route up with a permanent socket: creating one costs more than everything else.
func (in *instance) routeTo(to unix.Sockaddr, domain int) (source netip.Addr, err error) {
	fd, ok := in.probes[domain]
	if !ok {
		if fd, err = in.newProbeSocket(domain); err != nil {
			return source, err
		}
		in.probes[domain] = fd
	}
	source, err = in.sourceOf(fd, to)
	if in.sys.Disconnect(fd) != nil { // the next lookup would use this source only
		in.closeFD(fd)
		delete(in.probes, domain)
	}
	return source, err
}

// newProbeSocket makes a datagram socket.
func (in *instance) newProbeSocket(domain int) (int, error) {
	fd, err := in.sys.Socket(domain, unix.SOCK_DGRAM)
	if err != nil {
		return -1, fmt.Errorf("iwarp: socket: %w", err)
	}
	return fd, nil
}

// sourceOf connects a datagram socket and returns its address.
func (in *instance) sourceOf(fd int, to unix.Sockaddr) (netip.Addr, error) {
	if err := in.sys.Connect(fd, to); err != nil {
		if err == unix.EACCES { // a broadcast address
			err = unix.ENETUNREACH
		}
		return netip.Addr{}, fmt.Errorf("iwarp: no route to %v: %w", in.addrOf(to).Addr(), err)
	}
	got, err := in.sys.Local(fd)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("iwarp: getsockname: %w", err)
	}
	return in.addrOf(got).Addr(), nil
}
