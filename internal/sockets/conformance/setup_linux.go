package conformance

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// setup is how connections come about.
var setup = []fact{
	{"a socket that is not connected", func(w *world) {
		e := w.newTCP(w.Client)
		e.awaitReady("nothing was done with it", unused)
		e.recv("nothing was done with it", unix.ENOTCONN)
		e.send("nothing was done with it", unix.EPIPE)
		e.bind(netip.AddrPortFrom(w.Source, 0))
		e.staysReady("it is bound", unused)
		_, _, err := e.p.Accept(e.fd)
		w.want("accept", err, unix.EINVAL)
	}},
	{"connect, accept", func(w *world) {
		l, at := w.newListener(16)
		l.staysReady("nobody has come", nothing)
		_, _, err := l.p.Accept(l.fd)
		w.want("accept", err, unix.EAGAIN)
		c := w.newTCP(w.Client)
		from := c.bind(netip.AddrPortFrom(w.Source, 0))
		c.connect(at)
		c.awaitReady("connected", writable)
		w.want("SO_ERROR", c.takeError(), nil)
		l.awaitReady("somebody has come", eventloop.Readable)
		fd, sa, err := l.p.Accept(l.fd)
		w.must(err)
		s := w.addEnd(l.p, fd, nil)
		if got := addrPort(sa); got != from {
			w.Errorf("accept names %v, want %v", got, from)
		}
		if got := [...]netip.AddrPort{c.localAddr(), c.peerAddr(), s.localAddr(), s.peerAddr()}; got != [...]netip.AddrPort{from, at, at, from} {
			w.Errorf("the ends' addresses are %v", got)
		}
		s.staysReady("accepted", writable)
		l.staysReady("nobody else has come", nothing)
		c.recv("nothing was sent", unix.EAGAIN)
		s.recv("nothing was sent", unix.EAGAIN)
	}},
	{"connections are accepted in the order in which they came", func(w *world) {
		l, at := w.newListener(16)
		var came, accepted []netip.AddrPort
		for range 5 {
			c := w.dial(at)
			c.awaitReady("connected", writable)
			w.letSettle() // the handshake's last acknowledgement
			came = append(came, c.localAddr())
		}
		for range came {
			accepted = append(accepted, l.accept().peerAddr())
		}
		l.awaitReady("all are accepted", nothing)
		if !slices.Equal(accepted, came) {
			w.Errorf("accepted %v, but they came as %v", accepted, came)
		}
	}},
	{"a connection can be used before it is accepted", func(w *world) {
		l, at := w.newListener(16)
		c := w.dial(at)
		c.awaitReady("connected", writable)
		c.write([]byte("early"))
		s := l.accept()
		s.read([]byte("early"))
	}},
	{"what is accepted has the listener's options", func(w *world) {
		l := w.newTCP(w.Server)
		options := []struct{ level, opt, value int }{
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 12345},
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
			{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		}
		for _, o := range options {
			l.setOption(o.level, o.opt, o.value)
		}
		at := l.bind(netip.AddrPortFrom(w.Address, 0))
		w.must(l.p.Listen(l.fd, 1))
		w.dial(at)
		s := l.accept()
		for _, o := range options {
			if got := s.getOption(o.level, o.opt); got != o.value {
				w.Errorf("option %d/%d is %d, want %d", o.level, o.opt, got, o.value)
			}
		}
		if got := s.getOption(unix.SOL_SOCKET, unix.SO_DOMAIN); got != familyOf(w.Address) {
			w.Errorf("its domain is %d", got)
		}
		if mss := s.getOption(unix.IPPROTO_TCP, unix.TCP_MAXSEG); mss < 500 || mss > 65535 {
			w.Errorf("its segments are %d bytes", mss)
		}
	}},
	{"nobody listens", func(w *world) {
		none := w.newTCP(w.Server)
		at := none.bind(netip.AddrPortFrom(w.Address, 0)) // no other socket takes the port
		c := w.newTCP(w.Client)
		c.bind(netip.AddrPortFrom(w.Source, 0))
		if err := c.p.Connect(c.fd, toSockaddr(at)); err == unix.ECONNREFUSED {
			return // known immediately
		} else if err != unix.EINPROGRESS {
			w.Fatal(err)
		}
		c.awaitReady("refused", broken)
		c.staysReady("refused", broken)
		_, err := c.p.Peer(c.fd)
		w.want("getpeername", err, unix.ENOTCONN)
		w.want("SO_ERROR", c.takeError(), unix.ECONNREFUSED)
		w.want("SO_ERROR for the second time", c.takeError(), nil)
		c.awaitReady("the error was taken", over)
	}},
	{"a listener that is shut down", func(w *world) {
		l, at := w.newListener(16)
		l.shutdown(unix.SHUT_RD)
		l.awaitReady("it does not listen", unused)
		_, _, err := l.p.Accept(l.fd)
		w.want("accept", err, unix.EINVAL)
		w.dial(at).awaitReady("refused", broken)
	}},
	{"closed descriptors", func(w *world) {
		e := w.newTCP(w.Client)
		e.close()
		w.want("close", e.p.Close(e.fd), unix.EBADF)
		_, err := e.p.Recv(e.fd, make([]byte, 1))
		w.want("recv", err, unix.EBADF)
		_, err = e.p.Local(e.fd)
		w.want("getsockname", err, unix.EBADF)
		_, _, err = e.p.Accept(e.fd)
		w.want("accept", err, unix.EBADF)
	}},
}

// backlog is about listeners with too many connections, and their end.
var backlog = []fact{
	{"a full backlog", func(w *world) {
		l, at := w.newListener(1)
		for range 2 { // one more than the backlog
			w.dial(at).awaitReady("connected", writable)
		}
		w.letSettle() // the last acknowledgement of the handshake
		late := w.dial(at)
		late.staysReady("the accept queue is full", nothing)
		_, err := late.p.Peer(late.fd)
		w.want("getpeername", err, unix.ENOTCONN)
		late.recv("the handshake is under way", unix.EAGAIN)
		l.accept()
		late.awaitReady("there is room, and the SYN was sent again", writable)
		l.accept()
		if got := l.accept().peerAddr(); got != late.localAddr() {
			w.Errorf("the last one is %v, want %v", got, late.localAddr())
		}
	}},
	{"a listener is closed with connections that nobody accepted", func(w *world) {
		l, at := w.newListener(16)
		c := w.dial(at)
		c.awaitReady("connected", writable)
		l.awaitReady("it waits", eventloop.Readable)
		l.close()
		c.awaitReady("reset", broken)
		c.recv("reset", unix.ECONNRESET)
	}},
	{"a listener is closed, and what it accepted stays", func(w *world) {
		c, s := w.connectedPair()
		c.write([]byte("here"))
		s.read([]byte("here"))
		c.staysReady("open", writable)
	}},
	{"a connection ends before it is accepted", func(w *world) {
		l, at := w.newListener(16)
		c := w.dial(at)
		c.awaitReady("connected", writable)
		from := c.localAddr()
		l.awaitReady("it waits", eventloop.Readable)
		c.abort()
		fd, sa, err := l.p.Accept(l.fd)
		s := w.addEnd(l.p, fd, err)
		if got := addrPort(sa); got != from {
			w.Errorf("accept names %v, want %v", got, from)
		}
		if got := s.localAddr(); got != at {
			w.Errorf("its own address is %v, want %v", got, at)
		}
		s.awaitReady("reset", broken)
		s.recv("reset", unix.ECONNRESET)
		l.awaitReady("no other waits", nothing)
	}},
}
