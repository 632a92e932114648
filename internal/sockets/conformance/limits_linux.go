package conformance

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// limits is about options and exhausted resources.
var limits = []fact{
	{"options", func(w *world) {
		e := w.newTCP(w.Client)
		for _, o := range []struct{ level, opt, value int }{
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0},
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30000},
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
			{unix.IPPROTO_IP, unix.IP_TOS, 0x20},
			{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		} {
			e.setOption(o.level, o.opt, o.value)
			if got := e.getOption(o.level, o.opt); got != o.value && o.opt != unix.TCP_QUICKACK {
				w.Errorf("option %d/%d is %d, and was set to %d", o.level, o.opt, got, o.value)
			}
		}
	}},
	{"options of IPv6", func(w *world) {
		w.requireIPv6()
		e := w.socket(w.Client, unix.AF_INET6, unix.SOCK_STREAM)
		e.setOption(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 0x20)
		e.setOption(unix.IPPROTO_IP, unix.IP_TOS, 0x40)
		if six, four := e.getOption(unix.IPPROTO_IPV6, unix.IPV6_TCLASS), e.getOption(unix.IPPROTO_IP, unix.IP_TOS); six != 0x20 || four != 0x40 {
			w.Errorf("traffic classes are %#x for IPv6 and %#x for IPv4", six, four)
		}
	}},
	{"ends of records", func(w *world) {
		c, s := w.connectedPair()
		for range 3 { // they divide nothing that is read
			if n, err := c.p.Send(c.fd, [][]byte{[]byte("a"), []byte("b")}, unix.MSG_EOR); n == 1 && err == nil {
				c.write([]byte("b"))
			} else if n != 2 || err != nil {
				w.Fatalf("send: %d, %v", n, err)
			}
		}
		s.read([]byte("ababab"))
	}},
	{"a peer that reads nothing for too long", func(w *world) {
		c, _ := w.connectedPair()
		c.fillBuffer()
		c.setOption(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 500)
		c.awaitReady("given up", broken)
		c.recv("given up", unix.ETIMEDOUT)
		c.recv("given up, and the error was taken", nil)
		c.send("given up", unix.EPIPE)
	}},
	{"a peer that reads nothing, and nobody minds", func(w *world) {
		c, s := w.connectedPair()
		c.setOption(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1)
		c.setOption(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
		sent := c.fillBuffer()
		s.read(sent)
		c.awaitReady("there is room again", writable)
	}},
	{"no more descriptors", func(w *world) {
		if w.Exhaust == nil {
			w.Skip("descriptors do not run out here")
		}
		l, at := w.newListener(16)
		restore := w.Exhaust()
		defer restore()
		_, err := l.p.Socket(familyOf(w.Address), unix.SOCK_STREAM)
		w.want("socket", err, unix.EMFILE)
		_, _, err = l.p.Accept(l.fd)
		w.want("accept, and nobody has come", err, unix.EMFILE)
		restore()
		c := w.newTCP(w.Client)
		c.bind(netip.AddrPortFrom(w.Source, 0))
		restore = w.Exhaust()
		c.connect(at)
		l.awaitReady("somebody has come", eventloop.Readable)
		_, _, err = l.p.Accept(l.fd)
		w.want("accept", err, unix.EMFILE)
		l.staysReady("somebody still waits", eventloop.Readable)
		restore()
		if got := l.accept().peerAddr(); got != c.localAddr() {
			w.Errorf("accepted %v, want %v", got, c.localAddr())
		}
	}},
}
