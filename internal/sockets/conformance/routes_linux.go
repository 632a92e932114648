package conformance

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// routes is about the addresses that a connected datagram socket gets from the routing table.
var routes = []fact{
	{"the source towards an address", func(w *world) {
		e := w.socket(w.Client, familyOf(w.Address), unix.SOCK_DGRAM)
		none := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		for range 2 { // repeatedly, because Disconnect resets everything
			e.connect(netip.AddrPortFrom(w.Address, 9))
			if got := e.localAddr(); got.Addr() != w.Source || got.Port() == 0 {
				w.Errorf("towards %v it is at %v, want %v", w.Address, got, w.Source)
			}
			w.must(e.p.Disconnect(e.fd))
			if got := e.localAddr(); got != none {
				w.Errorf("disconnected it is at %v", got)
			}
			e.connect(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 9))
			if got := e.localAddr().Addr(); !got.IsLoopback() {
				w.Errorf("towards loopback it is at %v", got)
			}
			w.must(e.p.Disconnect(e.fd))
		}
	}},
	{"a source that is chosen", func(w *world) {
		e := w.socket(w.Client, familyOf(w.Source), unix.SOCK_DGRAM)
		e.bind(netip.AddrPortFrom(w.Source, 0))
		e.connect(netip.AddrPortFrom(w.Address, 9))
		if got := e.localAddr().Addr(); got != w.Source {
			w.Errorf("bound to %v it is at %v", w.Source, got)
		}
	}},
	{"a source that is not of this machine", func(w *world) {
		e := w.socket(w.Client, familyOf(w.Foreign), unix.SOCK_DGRAM)
		w.want("bind", e.p.Bind(e.fd, toSockaddr(netip.AddrPortFrom(w.Foreign, 0))), unix.EADDRNOTAVAIL)
	}},
	{"the source towards an IPv6 address", func(w *world) {
		w.requireIPv6()
		e := w.socket(w.Client, unix.AF_INET6, unix.SOCK_DGRAM)
		e.connect(netip.AddrPortFrom(w.Address6, 9))
		if got := e.localAddr().Addr(); !got.IsValid() || got.IsUnspecified() {
			w.Errorf("towards %v it is at %v", w.Address6, got)
		}
		w.must(e.p.Disconnect(e.fd))
		if got := e.localAddr(); got != netip.AddrPortFrom(netip.IPv6Unspecified(), 0) {
			w.Errorf("disconnected it is at %v", got)
		}
	}},
	{"a network's broadcast address", func(w *world) {
		e := w.socket(w.Client, unix.AF_INET, unix.SOCK_DGRAM)
		w.want("connect", e.p.Connect(e.fd, toSockaddr(netip.AddrPortFrom(w.Broadcast, 9))), unix.EACCES)
	}},
	{"no route", func(w *world) {
		if !w.NoRoute.IsValid() {
			w.Skip("there may be a route to everywhere")
		}
		e := w.socket(w.Client, familyOf(w.NoRoute), unix.SOCK_DGRAM)
		to := toSockaddr(netip.AddrPortFrom(w.NoRoute, 9))
		w.want("connect of a datagram socket", e.p.Connect(e.fd, to), unix.ENETUNREACH)
		s := w.socket(w.Client, familyOf(w.NoRoute), unix.SOCK_STREAM)
		w.want("connect of a stream socket", s.p.Connect(s.fd, to), unix.ENETUNREACH)
	}},
}
