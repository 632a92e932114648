package conformance

import (
	"errors"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
)

// bindAddrScenarios test rdma_bind_addr(3).
var bindAddrScenarios = scenarios{
	// manpages: bind_addr-1
	"wildcard": func(w *world) {
		id := w.B.Bound(tcp, sides.Any4(0))
		if a := id.LocalAddr(); !a.IsWildcard() || id.Device() != nil || id.Info().Device != "" {
			w.Errorf("bound to %v, device %q: a wildcard has none", a, id.Info().Device)
		}
	},
	// manpages: bind_addr-2, bind_addr-3
	"specific address and its device": func(w *world) {
		id := w.B.Bound(tcp, w.deviceAddr())
		if id.LocalAddr().Addr() != w.rig.Address || id.Device() == nil || id.Info().Device != id.Device().Name() || id.Info().Port == 0 {
			w.Errorf("bound to %+v: the address decides the device and its port", id.Info())
		}
		if w.rig.Other.IsValid() {
			other := w.B.Bound(tcp, sides.At(w.rig.Other, 0))
			if other.LocalAddr().Addr() != w.rig.Other || other.Device() == nil || other.Info().Device == id.Info().Device {
				w.Errorf("bound to %+v and %+v: the addresses of two devices", id.Info(), other.Info())
			}
		}
	},
	// manpages: bind_addr-8
	"port 0 is the one that is heard": heardAtItsPort,
	// manpages: bind_addr-5
	"a port of one's choice": heardAtThePort,
	"loopback": func(w *world) {
		id := w.B.Bound(tcp, cmid.MustAddr("127.0.0.1:0"))
		if w.hasDeviation(LoopbackHasDevice) {
			if id.Device() == nil {
				w.Error("no device, although the driver says that loopback has one")
			}
		} else if id.Device() != nil || id.Info().Device != "" {
			w.Errorf("device %q: loopback is like a wildcard", id.Info().Device)
		}
	},
	// manpages: bind_addr-7
	"port 0 read back before listen": func(w *world) {
		id := w.B.Bound(tcp, sides.Any4(0))
		w.keepsPort("listen", id, func() { w.Must(id.Listen(1)) })
	},
	"port 0 read back before resolve": func(w *world) {
		id := w.A.Bound(tcp, sides.Any4(0))
		w.keepsPort("resolve_addr", id, func() { w.resolvePassive(id, cmid.Addr{}) })
	},
	// manpages: bind_addr-7
	"two wildcards get two ports": func(w *world) {
		if one, two := w.B.Bound(tcp, sides.Any4(0)), w.B.Bound(tcp, sides.Any4(0)); one.SrcPort() == two.SrcPort() {
			w.Errorf("both got %d", one.SrcPort())
		}
	},
	"second bind": func(w *world) {
		w.notBound("second bind_addr", w.B.Bound(tcp, sides.Any4(0)), sides.Any4(0), unix.EINVAL)
	},
	"null address": func(w *world) { w.notBound("bind_addr(NULL)", w.B.Create(tcp), cmid.Addr{}, unix.EINVAL) },
	// manpages: bind_addr-4
	"not local": func(w *world) {
		id := w.B.Create(tcp)
		w.notBound("a stranger's address", id, sides.At(w.rig.NotLocal, 0), unix.EADDRNOTAVAIL)
		w.notBound("multicast", id, cmid.MustAddr("239.1.2.3:0"), unix.EADDRNOTAVAIL)
		w.Must(id.BindAddr(sides.Any4(0)))
	},
	"address without a device": func(w *world) {
		w.skipIf(!w.rig.Plain.IsValid(), "every interface here has a device")
		id := w.B.Create(tcp)
		w.notBound("bind_addr", id, sides.At(w.rig.Plain, 0), unix.ENODEV)
		w.notBound("a good address, after that", id, w.deviceAddr(), unix.ENODEV)
	},
	"privileged port": func(w *world) {
		w.skipIf(w.rig.Privileged, "privileged here")
		w.notBound("port 80", w.B.Create(tcp), sides.Any4(80), unix.EACCES)
	},
	"link-local needs its zone": func(w *world) {
		w.notBound("fe80:: without zone", w.B.Create(tcp), cmid.MustAddr("[fe80::1]:0"), unix.EINVAL)
	},
	// manpages: bind_addr-4
	"in use": inUse,
	// manpages: listen-5
	"reuseaddr": reuseAddr,
	"afonly":    afOnly,
	"freed by destroy": func(w *world) {
		id := w.B.Bound(tcp, w.deviceAddr())
		a := id.LocalAddr()
		w.Must(id.Destroy())
		w.Must(w.B.Create(tcp).BindAddr(a))
	},
	"options": func(w *world) {
		id := w.B.Create(tcp)
		for _, c := range []struct {
			o     cmid.Option
			v     int
			errno unix.Errno
		}{
			{cmid.OptionTOS, 255, 0},
			{cmid.OptionTOS, 256, unix.EINVAL},
			{cmid.OptionTOS, -1, unix.EINVAL},
			{cmid.OptionAckTimeout, 31, 0},
			{cmid.OptionAckTimeout, 32, unix.EINVAL},
			{cmid.OptionReuseAddr, 1, 0},
			{cmid.OptionReuseAddr, 0, 0},
			{cmid.OptionAFOnly, 1, 0},
		} {
			w.WantErr("set_option", id.SetOption(c.o, c.v), c.errno)
		}
	},
}

// notBound requires that an address is refused, and that the identifier does not change.
func (w *world) notBound(why string, id *cmid.ID, a cmid.Addr, want unix.Errno) {
	w.Helper()
	before := id.State()
	w.WantErr(why, id.BindAddr(a), want)
	w.WantState(why, id, before)
}

// keepsPort requires that a port was chosen, and that do does not change it.
func (w *world) keepsPort(over string, id *cmid.ID, do func()) {
	w.Helper()
	port := id.SrcPort()
	if port == 0 {
		w.Fatal("no port was chosen")
	}
	if do(); id.SrcPort() != port {
		w.Errorf("port %d before %s, %d after: a bound identifier keeps its port", port, over, id.SrcPort())
	}
}

// resolvePassive resolves the passive side's address.
func (w *world) resolvePassive(id *cmid.ID, src cmid.Addr) {
	w.Helper()
	w.Must(id.ResolveAddr(src, w.Target(), time.Second))
	sides.Next[*cmid.AddrResolved](w.A, id)
}

// inUse tests the kernel's rules for two identifiers on one port, in both orders.
func inUse(w *world) {
	for _, c := range []struct {
		why      string
		one, two netip.Addr
		want     unix.Errno
	}{
		{"the same address", w.rig.Address, w.rig.Address, unix.EADDRINUSE},
		{"a wildcard and an address", netip.IPv4Unspecified(), w.rig.Address, unix.EADDRNOTAVAIL},
		{"an address and a wildcard", w.rig.Address, netip.IPv4Unspecified(), unix.EADDRNOTAVAIL},
		{"two wildcards", netip.IPv4Unspecified(), netip.IPv4Unspecified(), unix.EADDRNOTAVAIL},
		{"loopback twice", netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.AddrFrom4([4]byte{127, 0, 0, 1}), unix.EADDRNOTAVAIL},
		{"loopback and an address", netip.AddrFrom4([4]byte{127, 0, 0, 1}), w.rig.Address, unix.EADDRNOTAVAIL},
		{"two addresses", w.rig.Address, w.rig.Second, 0},
	} {
		// Loopback is a wildcard, which conflicts with every other address.
		if !c.two.IsValid() || c.want == 0 && c.two.IsLoopback() {
			continue
		}
		holder := w.B.Bound(tcp, sides.At(c.one, 0))
		id := w.B.Create(tcp)
		err := id.BindAddr(sides.At(c.two, holder.SrcPort()))
		w.WantErr(c.why, err, c.want)
		if c.want != 0 {
			if !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), "address already in use: another identifier or program has the port") {
				w.Errorf("%s: %v: it is this host's address, and in use", c.why, err)
			}
			w.WantState(c.why, id, states.Idle)
			w.Must(id.BindAddr(sides.At(c.two, 0))) // another port will do
		}
	}
}

func reuseAddr(w *world) {
	shared := func(a cmid.Addr) *cmid.ID {
		id := w.B.Create(tcp)
		w.Must(id.SetOption(cmid.OptionReuseAddr, 1))
		w.Must(id.BindAddr(a))
		return id
	}
	one := shared(w.deviceAddr())
	two := shared(one.LocalAddr())
	if err := two.Listen(1); !errors.Is(err, unix.EADDRINUSE) && !errors.Is(err, unix.EADDRNOTAVAIL) {
		w.Errorf("listen on a shared port: %v", err)
	}
	w.WantState("after that", two, states.Bound)
	w.notBound("one side without the option", w.B.Create(tcp), one.LocalAddr(), unix.EADDRINUSE)
	w.Must(one.Destroy())
	w.Must(two.Listen(1))
	plain := w.B.Bound(tcp, w.deviceAddr())
	// This is legal on a bound identifier, and has an effect from then on.
	w.Must(plain.SetOption(cmid.OptionReuseAddr, 1))
	shared(plain.LocalAddr())
}

func afOnly(w *world) {
	six := w.B.Create(tcp)
	w.Must(six.SetOption(cmid.OptionAFOnly, 1))
	w.Must(six.BindAddr(cmid.MustAddr("[::]:0")))
	w.Must(w.B.Create(tcp).BindAddr(sides.Any4(six.SrcPort())))
	dual := w.B.Bound(tcp, cmid.MustAddr("[::]:0"))
	w.notBound("an IPv4 wildcard beside a dual one", w.B.Create(tcp), sides.Any4(dual.SrcPort()), unix.EADDRNOTAVAIL)
}

// resolveAddrScenarios test rdma_resolve_addr(3).
var resolveAddrScenarios = scenarios{
	// manpages: resolve_addr-1, resolve_addr-3, resolve_addr-4, resolve_addr-9
	"source chosen by the route": func(w *world) {
		id := w.Resolving(tcp, w.Target())
		w.WantState("until it is resolved", id, states.AddrQuery)
		ev := sides.Next[*cmid.AddrResolved](w.A, id)
		w.WantState("then", id, states.AddrResolved)
		if !ev.Local.Addr().IsValid() || ev.Local.IsWildcard() || ev.Local.Port() == 0 || ev.Peer != w.Target() {
			w.Errorf("%v -> %v: want a source with a port, and the destination", ev.Local, ev.Peer)
		}
		if id.Device() == nil || ev.Device != id.Device().Name() {
			w.Errorf("device %q: afterwards the identifier is bound to one", ev.Device)
		}
	},
	// manpages: resolve_addr-7
	"a given source binds": func(w *world) {
		w.Listener(tcp, sides.Any4(0))
		id := w.A.Create(tcp)
		w.resolvePassive(id, sides.At(w.rig.Local, 0))
		if id.LocalAddr().Addr() != w.rig.Local || id.SrcPort() == 0 {
			w.Errorf("source %v, want %v", id.LocalAddr(), w.rig.Local)
		}
		w.awaitRequest(id)
	},
	// manpages: resolve_addr-7
	"a given source binds, whatever comes of it": boundBySource,
	// manpages: resolve_addr-4, resolve_addr-6, resolve_addr-8
	"the routing table's source": routedSource,
	// manpages: resolve_addr-6, resolve_addr-7
	"no route from the source": noRouteFromSource,
	// manpages: bind_addr-6
	"a bound identifier keeps its source": func(w *world) {
		w.Listener(tcp, sides.Any4(0))
		id := w.A.Bound(tcp, sides.At(w.rig.Local, 0))
		before := id.LocalAddr()
		w.resolvePassive(id, sides.At(w.rig.NotLocal, 9)) // a source that is given now is ignored
		if id.LocalAddr() != before {
			w.Errorf("source %v, want %v", id.LocalAddr(), before)
		}
		w.awaitRequest(id)
	},
	// manpages: resolve_addr-2, resolve_addr-5, resolve_addr-6
	"timeout": func(w *world) {
		w.needSilent()
		w.timesOut(w.A.Create(tcp), 2*time.Second, 2*time.Second)
	},
	// manpages: resolve_addr-13
	"timeout 0": func(w *world) {
		id := w.A.Create(tcp)
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), 0))
		sides.Next[*cmid.AddrResolved](w.A, id)
		w.Must(id.ResolveRoute(0))
		sides.Next[*cmid.RouteResolved](w.A, id)
		if !w.rig.Silent.IsValid() {
			return // no peer is asked before connecting
		}
		w.timesOut(w.A.Create(tcp), 0, 2*time.Second)
	},
	"retry after an error": func(w *world) {
		w.needSilent()
		id := w.A.Create(tcp)
		w.timesOut(id, time.Second, time.Second)
		w.keepsPort("another resolve_addr", id, func() { w.resolvePassive(id, cmid.Addr{}) })
	},
	// manpages: resolve_addr-5, resolve_addr-6
	"no route": func(w *world) {
		w.skipIf(!w.rig.NoRoute.IsValid(), "there may be a route to everywhere")
		id := w.A.Create(tcp)
		w.WantErrIn("resolve_addr, whose bind has succeeded", id, id.ResolveAddr(cmid.Addr{}, sides.At(w.rig.NoRoute, 1), time.Second), unix.ENETUNREACH, states.Bound)
		w.notBound("bind_addr after that", id, sides.Any4(0), unix.EINVAL)
	},
	"address without a device": func(w *world) {
		w.skipIf(!w.rig.Plain.IsValid(), "every interface here has a device")
		id := w.B.Create(tcp)
		w.Must(id.ResolveAddr(cmid.Addr{}, sides.At(w.rig.Plain, 1), time.Second))
		w.WantErr("a local address without a device", sides.Next[*cmid.AddrError](w.B, id), unix.ENODEV)
	},
	"families must match": func(w *world) {
		id := w.A.Bound(tcp, sides.Any4(0))
		w.WantErrIn("IPv6 from an IPv4 identifier", id, id.ResolveAddr(cmid.Addr{}, cmid.MustAddr("[::1]:1"), time.Second), unix.EINVAL, states.Bound)
	},
	"null destination": func(w *world) {
		id := w.A.Create(tcp)
		w.WantErr("resolve_addr(NULL)", id.ResolveAddr(cmid.Addr{}, cmid.Addr{}, time.Second), unix.EINVAL)
	},
	// manpages: resolve_addr-10
	"route": func(w *world) {
		_, id := w.Pair(tcp)
		w.WantErr("resolve_route again", id.ResolveRoute(time.Second), unix.EINVAL)
		w.WantErr("resolve_addr again", id.ResolveAddr(cmid.Addr{}, w.Target(), time.Second), unix.EINVAL)
	},
}

func (w *world) needSilent() {
	w.Helper()
	w.skipIf(!w.rig.Silent.IsValid(), "nobody is asked before connecting")
}

// timesOut resolves an address that does not answer, and checks how long that takes.
func (w *world) timesOut(id *cmid.ID, timeout, takes time.Duration) {
	w.Helper()
	begin := w.A.Loop.Now()
	w.Must(id.ResolveAddr(cmid.Addr{}, sides.At(w.rig.Silent, 7471), timeout))
	f := sides.Next[*cmid.AddrError](w.A, id)
	w.WantErr("nobody answers", f, unix.ETIMEDOUT)
	if d := w.A.Loop.Now().Sub(begin); d < takes || d > takes+time.Second {
		w.Errorf("after %v, want %v", d, takes)
	}
	w.WantState("afterwards", id, states.Bound)
	if f.Failed() == nil {
		w.Error("the failure names no command")
	}
}
