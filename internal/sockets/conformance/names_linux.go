package conformance

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// names is about addresses of sockets, and the machine's own.
var names = []fact{
	{"addresses of a socket", func(w *world) {
		e := w.newTCP(w.Server)
		none := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		if got := e.localAddr(); got != none {
			w.Errorf("an unbound socket is at %v", got)
		}
		_, err := e.p.Peer(e.fd)
		w.want("getpeername", err, unix.ENOTCONN)
		low, n := e.p.EphemeralPorts()
		at := e.bind(netip.AddrPortFrom(w.Address, 0))
		if at.Addr() != w.Address || int(at.Port()) < low || int(at.Port()) >= low+n {
			w.Errorf("bound to port 0 of %v it is at %v, and ephemeral ports are %d from %d", w.Address, at, n, low)
		}
		w.want("a second bind", e.p.Bind(e.fd, toSockaddr(none)), unix.EINVAL)
	}},
	{"an address of another machine", func(w *world) {
		e := w.newTCP(w.Server)
		w.want("bind", e.p.Bind(e.fd, toSockaddr(netip.AddrPortFrom(w.Foreign, 0))), unix.EADDRNOTAVAIL)
		e.bind(netip.AddrPortFrom(w.Address, 0)) // it can be bound to something else
	}},
	{"a listener on the wildcard", func(w *world) {
		l := w.newTCP(w.Server)
		at := l.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
		w.must(l.p.Listen(l.fd, 16))
		for _, a := range []netip.Addr{w.Address, w.Second} {
			to := netip.AddrPortFrom(a, at.Port())
			c := w.newTCP(w.Client)
			c.connect(to)
			if got := l.accept().localAddr(); got != to {
				w.Errorf("connected to %v, accepted at %v", to, got)
			}
		}
	}},
	{"a specific listener comes before one on the wildcard", func(w *world) {
		all, one := w.newTCP(w.Server), w.newTCP(w.Server)
		all.setReuseAddr()
		one.setReuseAddr()
		at := all.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
		to := one.bind(netip.AddrPortFrom(w.Address, at.Port()))
		w.must(one.p.Listen(one.fd, 16))
		err := all.p.Listen(all.fd, 16)
		w.want("listen on the wildcard of the same port", err, unix.EADDRINUSE)
		w.dial(to)
		one.accept()
	}},
	{"IPv6", func(w *world) {
		w.requireIPv6()
		l := w.socket(w.Server, unix.AF_INET6, unix.SOCK_STREAM)
		at := l.bind(netip.AddrPortFrom(w.Address6, 0))
		w.must(l.p.Listen(l.fd, 16))
		c := w.socket(w.Client, unix.AF_INET6, unix.SOCK_STREAM)
		c.connect(at)
		s := l.accept()
		c.awaitReady("connected", writable)
		if s.localAddr() != at || c.peerAddr() != at || s.peerAddr() != c.localAddr() {
			w.Errorf("the ends are %v and %v, connected to %v", c.localAddr(), s.localAddr(), at)
		}
		if got := s.getOption(unix.SOL_SOCKET, unix.SO_DOMAIN); got != unix.AF_INET6 {
			w.Errorf("its domain is %d", got)
		}
	}},
	{"IPv4 on an IPv6 socket", func(w *world) {
		w.requireIPv6()
		l := w.socket(w.Server, unix.AF_INET6, unix.SOCK_STREAM)
		l.setOption(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		at := l.bind(netip.AddrPortFrom(netip.IPv6Unspecified(), 0))
		w.must(l.p.Listen(l.fd, 16))
		c := w.newTCP(w.Client)
		c.connect(netip.AddrPortFrom(w.Address, at.Port()))
		s := l.accept()
		mapped := func(a netip.AddrPort) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
		}
		if s.localAddr() != mapped(c.peerAddr()) || s.peerAddr() != mapped(c.localAddr()) {
			w.Errorf("accepted %v from %v, want %v from %v", s.localAddr(), s.peerAddr(), mapped(c.peerAddr()), mapped(c.localAddr()))
		}
		s.write([]byte("to IPv4"))
		c.read([]byte("to IPv4"))
	}},
	{"interfaces", func(w *world) {
		index, err := w.Client.InterfaceIndex("lo")
		w.must(err)
		name, err := w.Client.InterfaceName(index)
		if err != nil || index <= 0 || name != "lo" {
			w.Errorf("interface %d is %q, %v, want lo", index, name, err)
		}
		if _, err := w.Client.InterfaceIndex("none0"); err == nil {
			w.Error("there is an interface none0")
		}
		if _, err := w.Client.InterfaceName(1 << 20); err == nil {
			w.Error("there is an interface 1<<20")
		}
	}},
	{"random bytes", func(w *world) {
		var a, b [32]byte
		w.Client.Random(a[:])
		w.Client.Random(b[:])
		if a == b || a == [32]byte{} {
			w.Errorf("%x, then %x", a, b)
		}
	}},
}

func (w *world) requireIPv6() {
	if !w.Address6.IsValid() {
		w.Skip("there is no IPv6 here")
	}
}
