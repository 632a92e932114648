package iwarp

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// closeFD closes fd. Its errors (EINTR, EIO of a file) are irrelevant for a socket.
func (in *instance) closeFD(fd int) { _ = in.sys.Close(fd) }

// toSockaddr converts a for the kernel and returns its address family too. It fails with EINVAL if
// a is not IP or lacks its zone, and with ENODEV for an unknown zone.
func (in *instance) toSockaddr(a cmid.Addr) (unix.Sockaddr, int, error) {
	ip := a.Addr()
	switch {
	case a.IB != nil || !ip.IsValid():
		return nil, 0, fmt.Errorf("iwarp: %q is not an IP address: %w", a.String(), unix.EINVAL)
	case ip.Is4():
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: int(a.Port())}, unix.AF_INET, nil
	}
	sa := &unix.SockaddrInet6{Addr: ip.As16(), Port: int(a.Port())}
	if z := ip.Zone(); z != "" {
		index, err := in.zoneIndex(z)
		if err != nil {
			return nil, 0, err
		}
		sa.ZoneId = index
	} else if ip.IsLinkLocalUnicast() {
		return nil, 0, fmt.Errorf("iwarp: link-local address %v: add %%INTERFACE, as in %v%%eth0: %w", ip, ip, unix.EINVAL)
	}
	return sa, unix.AF_INET6, nil
}

// zoneIndex returns the index of an interface.
func (in *instance) zoneIndex(zone string) (uint32, error) {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	index, err := in.sys.InterfaceIndex(zone)
	if err != nil {
		return 0, fmt.Errorf("iwarp: zone %q: %w", zone, unix.ENODEV)
	}
	return uint32(index), nil
}

// zoneName returns the name of an interface, or its index if the interface no longer exists.
func (in *instance) zoneName(index uint32) string {
	name, err := in.sys.InterfaceName(int(index))
	if err != nil {
		return strconv.FormatUint(uint64(index), 10)
	}
	return name
}

// addrOf converts sa to a cmid.Addr.
func (in *instance) addrOf(sa unix.Sockaddr) cmid.Addr {
	switch s := sa.(type) {
	case *unix.SockaddrInet4:
		return cmid.AddrFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(s.Addr)
		if s.ZoneId != 0 {
			ip = ip.WithZone(in.zoneName(s.ZoneId))
		}
		return cmid.AddrFrom(ip, uint16(s.Port))
	}
	return cmid.Addr{}
}

// unmapAddr turns ::ffff:1.2.3.4 into 1.2.3.4: a connection from IPv4 to a listener on :: is an
// IPv4 connection.
func unmapAddr(a cmid.Addr) cmid.Addr { return cmid.AddrFrom(a.Addr().Unmap(), a.Port()) }

// socketOption is an option of a socket, with its name in errors.
type socketOption struct {
	name              string
	level, opt, value int
}

func (in *instance) setOptions(fd int, options ...socketOption) error {
	for _, o := range options {
		if err := in.sys.SetOption(fd, o.level, o.opt, o.value); err != nil {
			return fmt.Errorf("iwarp: %s: %w", o.name, err)
		}
	}
	return nil
}

// setConnOptions sets the options that every connection has. Sockets from accept(2) inherit them
// from the listener. Turning TCP_QUICKACK off makes the acknowledgements of the set-up travel with
// the next data: the handshake's with the Request, and so on.
func (in *instance) setConnOptions(fd int) error {
	return in.setOptions(fd,
		socketOption{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		socketOption{"TCP_QUICKACK", unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0},
	)
}

// setLossOptions makes TCP notice that the peer has vanished. Sockets from accept(2) inherit these
// options, too. A connecting side has time-outs of its own until it is established, and needs none
// of them if its owner then checks the peer (queuePair.Watched).
func (in *instance) setLossOptions(fd int) error {
	user := in.cfg.UserTimeout
	secs := func(d time.Duration) int { return max(1, int(d/time.Second)) }
	return in.setOptions(fd,
		socketOption{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(user / time.Millisecond)},
		socketOption{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		socketOption{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, secs(user / 2)},
		socketOption{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, secs(user / 6)},
	)
}

// setTOS sets the traffic class of fd's packets, IPv4 and IPv6.
func (in *instance) setTOS(fd int, tos uint8) error {
	domain, err := in.sys.Option(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	if domain == unix.AF_INET6 {
		if err := in.sys.SetOption(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(tos)); err != nil {
			return err
		}
	}
	// on an IPv6 socket this is for its IPv4 packets
	return in.sys.SetOption(fd, unix.IPPROTO_IP, unix.IP_TOS, int(tos))
}

// unackedBytes returns how many bytes fd's peer has not acknowledged; 0 if the connection has
// ended.
func (in *instance) unackedBytes(fd int) int {
	n, err := in.sys.Unacknowledged(fd)
	if err != nil {
		return 0
	}
	return n
}

// sockError returns the pending error of fd and clears it.
func (in *instance) sockError(fd int) error {
	n, err := in.sys.Option(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if n != 0 {
		return unix.Errno(n)
	}
	return nil
}

// errnoOf returns the errno in err, or EIO if there is none.
func errnoOf(err error) unix.Errno {
	if e, ok := errors.AsType[unix.Errno](err); ok {
		return e
	}
	return unix.EIO
}
