package conformance

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// ports is about the allocation of ports.
var ports = []fact{
	{"a port that is taken", func(w *world) {
		one := w.newTCP(w.Server)
		at := one.bind(netip.AddrPortFrom(w.Address, 0))
		two := w.newTCP(w.Server)
		w.want("bind", two.p.Bind(two.fd, toSockaddr(at)), unix.EADDRINUSE)
		two.setReuseAddr()
		w.want("bind with SO_REUSEADDR on one side", two.p.Bind(two.fd, toSockaddr(at)), unix.EADDRINUSE)
		one.setReuseAddr()
		two.bind(at) // after a failure, and with the option on both sides
		three := w.newTCP(w.Server)
		w.want("bind without it", three.p.Bind(three.fd, toSockaddr(at)), unix.EADDRINUSE)
		two.close()
		one.close()
		three.bind(at)
	}},
	{"a port that is shared, and who listens", func(w *world) {
		one, two, three := w.newTCP(w.Server), w.newTCP(w.Server), w.newTCP(w.Server)
		for _, e := range []*end{one, two, three} {
			e.setReuseAddr()
		}
		at := one.bind(netip.AddrPortFrom(w.Address, 0))
		two.bind(at)
		w.must(one.p.Listen(one.fd, 1))
		w.want("a second listen", two.p.Listen(two.fd, 1), unix.EADDRINUSE)
		w.want("bind to a listener's port", three.p.Bind(three.fd, toSockaddr(at)), unix.EADDRINUSE)
		one.close()
		w.must(two.p.Listen(two.fd, 1))
	}},
	{"a port of two addresses", func(w *world) {
		one, two, all := w.newTCP(w.Server), w.newTCP(w.Server), w.newTCP(w.Server)
		at := one.bind(netip.AddrPortFrom(w.Address, 0))
		other := netip.AddrPortFrom(w.Second, at.Port())
		if got := two.bind(other); got != other {
			w.Errorf("bound to %v, want %v", got, other)
		}
		wildcard := netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
		w.want("bind to the wildcard", all.p.Bind(all.fd, toSockaddr(wildcard)), unix.EADDRINUSE)
	}},
	{"a port of two families", func(w *world) {
		w.requireIPv6()
		four := w.newTCP(w.Server)
		port := four.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)).Port()
		six := w.socket(w.Server, unix.AF_INET6, unix.SOCK_STREAM)
		at := netip.AddrPortFrom(netip.IPv6Unspecified(), port)
		six.setOption(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		w.want("bind for both families", six.p.Bind(six.fd, toSockaddr(at)), unix.EADDRINUSE)
		six.setOption(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
		six.bind(at)
	}},
	{"a listener's port while its connections live", func(w *world) {
		l := w.newTCP(w.Server)
		l.setReuseAddr()
		at := l.bind(netip.AddrPortFrom(w.Address, 0))
		w.must(l.p.Listen(l.fd, 16))
		c := w.dial(at)
		s := l.accept()
		c.awaitReady("connected", writable)
		l.close()
		plain := w.newTCP(w.Server)
		w.want("bind without SO_REUSEADDR", plain.p.Bind(plain.fd, toSockaddr(at)), unix.EADDRINUSE)
		next := w.newTCP(w.Server)
		next.setReuseAddr()
		next.bind(at)
		w.must(next.p.Listen(next.fd, 16))
		c.write([]byte("the old one"))
		s.read([]byte("the old one"))
		w.dial(at)
		next.accept()
	}},
	{"the addresses and ports of a connection that lives", func(w *world) {
		l, at := w.newListener(16)
		c := w.newTCP(w.Client)
		c.setReuseAddr()
		from := c.bind(netip.AddrPortFrom(w.Source, 0))
		c.connect(at)
		s := l.accept()
		c.awaitReady("connected", writable)
		again := w.newTCP(w.Client)
		w.want("bind without SO_REUSEADDR", again.p.Bind(again.fd, toSockaddr(from)), unix.EADDRINUSE)
		again.setReuseAddr()
		again.bind(from)
		w.want("connect", again.p.Connect(again.fd, toSockaddr(at)), unix.EADDRNOTAVAIL)
		other, to := w.newListener(16)
		again.connect(to) // the port may be used for another peer
		other.accept()
		again.awaitReady("connected", writable)
		c.write([]byte("the old one"))
		s.read([]byte("the old one"))
	}},
	{"TIME_WAIT of a connecting side", func(w *world) {
		l, at := w.newListener(16)
		for _, share := range []bool{false, true} {
			c := w.newTCP(w.Client)
			if share {
				c.setReuseAddr()
			}
			from := c.bind(netip.AddrPortFrom(w.Source, 0))
			c.connect(at)
			s := l.accept()
			c.awaitReady("connected", writable)
			c.close()
			s.awaitReady("the end", both)
			s.close()
			w.letSettle() // wait for the peer's FIN
			again := w.newTCP(w.Client)
			w.want("bind without SO_REUSEADDR", again.p.Bind(again.fd, toSockaddr(from)), unix.EADDRINUSE)
			again.setReuseAddr()
			if !share {
				w.want("bind with SO_REUSEADDR on one side", again.p.Bind(again.fd, toSockaddr(from)), unix.EADDRINUSE)
				continue
			}
			again.bind(from)
			again.connect(at) // timestamps distinguish the connections
			l.accept()
			again.awaitReady("connected", writable)
		}
	}},
	{"TIME_WAIT of an accepting side", func(w *world) {
		l, at := w.newListener(16)
		l.setReuseAddr()
		c := w.newTCP(w.Client)
		from := c.bind(netip.AddrPortFrom(w.Source, 0))
		c.connect(at)
		s := l.accept()
		c.awaitReady("connected", writable)
		s.close()
		c.awaitReady("the end", both)
		c.close()
		w.until("the client's side is gone", func() bool {
			c = w.newTCP(w.Client)
			return c.p.Bind(c.fd, toSockaddr(from)) == nil
		})
		c.connect(at)
		s = l.accept()
		c.awaitReady("connected", writable)
		if got := s.peerAddr(); got != from {
			w.Errorf("accepted %v, want %v", got, from)
		}
		l.close()
		next := w.newTCP(w.Server)
		w.want("bind without SO_REUSEADDR", next.p.Bind(next.fd, toSockaddr(at)), unix.EADDRINUSE)
		next.setReuseAddr()
		next.bind(at)
		w.must(next.p.Listen(next.fd, 1))
	}},
	{"no TIME_WAIT after a reset", func(w *world) {
		l, at := w.newListener(16)
		c := w.newTCP(w.Client)
		from := c.bind(netip.AddrPortFrom(w.Source, 0))
		c.connect(at)
		s := l.accept()
		c.awaitReady("connected", writable)
		c.abort()
		s.awaitReady("reset", broken)
		again := w.newTCP(w.Client)
		again.bind(from)
		again.connect(at)
		l.accept()
		again.awaitReady("connected", writable)
	}},
}
