package conformance

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
)

// These scenarios ask the peer which address and port an identifier has, because a driver's report
// about itself may be wrong.

// awaitRequest connects an identifier whose address is resolved, and waits for the request at the
// peer. The request must come from the address that the identifier reports.
func (w *world) awaitRequest(id *cmid.ID) {
	w.Helper()
	w.Must(id.ResolveRoute(time.Second))
	sides.Next[*cmid.RouteResolved](w.A, id)
	w.Queues(id, 0)
	w.Must(id.Connect(nil, nil))
	child, ev := w.B.Request()
	if ev.Peer != id.LocalAddr() || ev.Local != id.PeerAddr() || child.PeerAddr() != ev.Peer {
		w.Errorf("the request is %v <- %v, and was sent %v -> %v", ev.Local, ev.Peer, id.LocalAddr(), id.PeerAddr())
	}
}

// heardAtItsPort checks that port 0 lets the device choose a port, and that rdma_get_src_port(3)
// returns it.
func heardAtItsPort(w *world) {
	id := w.B.Bound(tcp, w.deviceAddr())
	port := id.SrcPort()
	w.Must(id.Listen(0))
	if child := w.Reaches(sides.At(w.rig.Address, port)); child.SrcPort() != port || id.SrcPort() != port {
		w.Errorf("the listener says port %d, and its request %d; want %d", id.SrcPort(), child.SrcPort(), port)
	}
}

// heardAtThePort checks that the device uses a port that was asked for.
func heardAtThePort(w *world) {
	id := w.B.Bound(tcp, w.deviceAddr()) // one that is free
	want := id.LocalAddr()
	w.Must(id.Destroy())
	id = w.B.Bound(tcp, want)
	w.Must(id.Listen(0))
	if id.LocalAddr() != want {
		w.Errorf("bound to %v, want %v", id.LocalAddr(), want)
	}
	w.Reaches(want)
}

// boundBySource checks that a source address binds the identifier, as rdma_bind_addr(3) would.
func boundBySource(w *world) {
	id := w.A.Create(tcp)
	w.WantErrIn("a stranger's source, which binds nothing", id, id.ResolveAddr(sides.At(w.rig.NotLocal, 0), sides.At(w.rig.Address, 1), time.Second), unix.EADDRNOTAVAIL, states.Idle)
	w.Must(id.ResolveAddr(sides.At(w.rig.Local, 0), sides.At(w.rig.Address, 1), time.Second))
	bound := id.LocalAddr()
	sides.Next[*cmid.AddrResolved](w.A, id)
	if bound.Addr() != w.rig.Local || bound.Port() == 0 || id.LocalAddr() != bound {
		w.Errorf("bound to %v, then %v; want %v and a port", bound, id.LocalAddr(), w.rig.Local)
	}
	other := w.A.Create(tcp)
	if err := other.BindAddr(bound); err == nil {
		w.Errorf("another identifier could bind to %v too", bound)
	}
}

// routedSource checks that the routing table decides the source and the device for a destination.
func routedSource(w *world) {
	w.Listener(tcp, sides.Any4(0))
	var devices []string
	for _, ip := range []netip.Addr{w.rig.Address, w.rig.Second, w.rig.Other} {
		if !ip.IsValid() {
			continue
		}
		id := w.Resolving(tcp, sides.At(ip, w.Port))
		ev := sides.Next[*cmid.AddrResolved](w.A, id)
		if want := w.routeSource(ip); ev.Local.Addr() != want || id.LocalAddr() != ev.Local {
			w.Errorf("source %v, then %v towards %v; the routing table says %v", ev.Local, id.LocalAddr(), ip, want)
		}
		if id.Device() == nil || ev.Device != id.Device().Name() {
			w.Errorf("device %q towards %v", ev.Device, ip)
		}
		devices = append(devices, ev.Device)
		w.awaitRequest(id)
	}
	if last := len(devices) - 1; w.rig.Other.IsValid() && w.Clock == nil && devices[0] == devices[last] {
		w.Errorf("one device towards addresses of two: %q", devices)
	}
}

// routeSource returns the source for a destination from this host's routing table. The active host
// in memory has only one source.
func (w *world) routeSource(dst netip.Addr) netip.Addr {
	w.Helper()
	if w.Clock != nil {
		return w.rig.Local
	}
	c := sides.Got(net.Dial("udp", sides.At(dst, 9).String()))(w) // sends nothing
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// noRouteFromSource checks that a route from loopback to another host does not exist, because the
// routing table decides.
func noRouteFromSource(w *world) {
	w.skipIf(w.Clock != nil || !w.hasDeviation(LoopbackHasDevice), "loopback is like a wildcard here, or there is no routing table")
	id := w.A.Create(tcp)
	err := id.ResolveAddr(cmid.MustAddr("127.0.0.1:0"), sides.At(w.rig.NotLocal, 1), time.Second)
	if err == nil {
		w.Fatal("resolved, and there is no way")
	}
	w.WantState("the bind inside has succeeded", id, states.Bound)
}
