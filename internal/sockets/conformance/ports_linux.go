package conformance

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// ports is about the allocation of ports.
var ports = []fact{
	{"a port that is taken", func(w *world) {
		one := w.tcp(w.Server)
		at := one.bind(netip.AddrPortFrom(w.Address, 0))
		two := w.tcp(w.Server)
		w.want("bind", two.p.Bind(two.fd, sockaddr(at)), unix.EADDRINUSE)
		two.share()
		w.want("bind with SO_REUSEADDR on one side", two.p.Bind(two.fd, sockaddr(at)), unix.EADDRINUSE)
		one.share()
		two.bind(at) // after a failure, and with the option on both sides
		three := w.tcp(w.Server)
		w.want("bind without it", three.p.Bind(three.fd, sockaddr(at)), unix.EADDRINUSE)
		two.close()
		one.close()
		three.bind(at)
	}},
	{"a port that is shared, and who listens", func(w *world) {
		one, two, three := w.tcp(w.Server), w.tcp(w.Server), w.tcp(w.Server)
		for _, e := range []*end{one, two, three} {
			e.share()
		}
		at := one.bind(netip.AddrPortFrom(w.Address, 0))
		two.bind(at)
		w.must(one.p.Listen(one.fd, 1))
		w.want("a second listen", two.p.Listen(two.fd, 1), unix.EADDRINUSE)
		w.want("bind to a listener's port", three.p.Bind(three.fd, sockaddr(at)), unix.EADDRINUSE)
		one.close()
		w.must(two.p.Listen(two.fd, 1))
	}},
	{"a port of two addresses", func(w *world) {
		one, two, all := w.tcp(w.Server), w.tcp(w.Server), w.tcp(w.Server)
		at := one.bind(netip.AddrPortFrom(w.Address, 0))
		other := netip.AddrPortFrom(w.Second, at.Port())
		if got := two.bind(other); got != other {
			w.Errorf("bound to %v, want %v", got, other)
		}
		wildcard := netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
		w.want("bind to the wildcard", all.p.Bind(all.fd, sockaddr(wildcard)), unix.EADDRINUSE)
	}},
	{"a port of two families", func(w *world) {
		w.needs6()
		four := w.tcp(w.Server)
		port := four.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)).Port()
		six := w.socket(w.Server, unix.AF_INET6, unix.SOCK_STREAM)
		at := netip.AddrPortFrom(netip.IPv6Unspecified(), port)
		six.set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		w.want("bind for both families", six.p.Bind(six.fd, sockaddr(at)), unix.EADDRINUSE)
		six.set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
		six.bind(at)
	}},
	{"a listener's port while its connections live", func(w *world) {
		l := w.tcp(w.Server)
		l.share()
		at := l.bind(netip.AddrPortFrom(w.Address, 0))
		w.must(l.p.Listen(l.fd, 16))
		c := w.dial(at)
		s := l.accept()
		c.ready("connected", writable)
		l.close()
		plain := w.tcp(w.Server)
		w.want("bind without SO_REUSEADDR", plain.p.Bind(plain.fd, sockaddr(at)), unix.EADDRINUSE)
		next := w.tcp(w.Server)
		next.share()
		next.bind(at)
		w.must(next.p.Listen(next.fd, 16))
		c.write([]byte("the old one"))
		s.read([]byte("the old one"))
		w.dial(at)
		next.accept()
	}},
	{"the addresses and ports of a connection that lives", func(w *world) {
		l, at := w.listen(16)
		c := w.tcp(w.Client)
		c.share()
		from := c.bind(netip.AddrPortFrom(w.Source, 0))
		c.connect(at)
		s := l.accept()
		c.ready("connected", writable)
		again := w.tcp(w.Client)
		w.want("bind without SO_REUSEADDR", again.p.Bind(again.fd, sockaddr(from)), unix.EADDRINUSE)
		again.share()
		again.bind(from)
		w.want("connect", again.p.Connect(again.fd, sockaddr(at)), unix.EADDRNOTAVAIL)
		other, to := w.listen(16)
		again.connect(to) // the port may be used for another peer
		other.accept()
		again.ready("connected", writable)
		c.write([]byte("the old one"))
		s.read([]byte("the old one"))
	}},
	{"TIME_WAIT of a connecting side", func(w *world) {
		l, at := w.listen(16)
		for _, share := range []bool{false, true} {
			c := w.tcp(w.Client)
			if share {
				c.share()
			}
			from := c.bind(netip.AddrPortFrom(w.Source, 0))
			c.connect(at)
			s := l.accept()
			c.ready("connected", writable)
			c.close()
			s.ready("the end", both)
			s.close()
			w.settle() // wait for the peer's FIN
			again := w.tcp(w.Client)
			w.want("bind without SO_REUSEADDR", again.p.Bind(again.fd, sockaddr(from)), unix.EADDRINUSE)
			again.share()
			if !share {
				w.want("bind with SO_REUSEADDR on one side", again.p.Bind(again.fd, sockaddr(from)), unix.EADDRINUSE)
				continue
			}
			again.bind(from)
			again.connect(at) // timestamps distinguish the connections
			l.accept()
			again.ready("connected", writable)
		}
	}},
	{"TIME_WAIT of an accepting side", func(w *world) {
		l, at := w.listen(16)
		l.share()
		c := w.tcp(w.Client)
		from := c.bind(netip.AddrPortFrom(w.Source, 0))
		c.connect(at)
		s := l.accept()
		c.ready("connected", writable)
		s.close()
		c.ready("the end", both)
		c.close()
		w.until("the client's side is gone", func() bool {
			c = w.tcp(w.Client)
			return c.p.Bind(c.fd, sockaddr(from)) == nil
		})
		c.connect(at)
		s = l.accept()
		c.ready("connected", writable)
		if got := s.peer(); got != from {
			w.Errorf("accepted %v, want %v", got, from)
		}
		l.close()
		next := w.tcp(w.Server)
		w.want("bind without SO_REUSEADDR", next.p.Bind(next.fd, sockaddr(at)), unix.EADDRINUSE)
		next.share()
		next.bind(at)
		w.must(next.p.Listen(next.fd, 1))
	}},
	{"no TIME_WAIT after a reset", func(w *world) {
		l, at := w.listen(16)
		c := w.tcp(w.Client)
		from := c.bind(netip.AddrPortFrom(w.Source, 0))
		c.connect(at)
		s := l.accept()
		c.ready("connected", writable)
		c.abort()
		s.ready("reset", broken)
		again := w.tcp(w.Client)
		again.bind(from)
		again.connect(at)
		l.accept()
		again.ready("connected", writable)
	}},
}
