package iwarp

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

func TestResolveAddr(t *testing.T) {
	n := newNode(t)
	h := n.id()
	n.do(h, &cmid.ResolveAddr{Dst: cmid.MustAddr("127.0.0.1:7471")})
	if len(n.events) != 0 {
		t.Errorf("delivered from inside Do: %v", n.events)
	}
	n.wait(h, states.KindAddrResolved)
	in := n.in.ids[h].Info()
	if in.Local.Addr().String() != "127.0.0.1" || in.Local.Port() == 0 || in.Device != "iwarp0" || in.Peer != cmid.MustAddr("127.0.0.1:7471") {
		t.Errorf("resolved to %+v, want source 127.0.0.1 with a port of its own", in)
	}
}

// TestResolveErrors: an unreachable destination is reported immediately, and the attempt loses
// nothing.
// manpages: resolve_addr-6
func TestResolveErrors(t *testing.T) {
	for _, c := range []struct {
		bind, src, dst string
		errno          error
	}{
		{"", "", "224.0.0.5:1", unix.ENETUNREACH},
		{"", "", "255.255.255.255:1", unix.ENETUNREACH},
		{"", "", "127.255.255.255:1", unix.ENETUNREACH},
		{"", "", "[ff02::1%lo]:1", unix.ENETUNREACH},
		{"", "", "[fe80::1]:1", unix.EINVAL},
		{"", "", "[fe80::1%nosuchif0]:1", unix.ENODEV},
		{"", "[::1]:0", "127.0.0.1:1", unix.EINVAL},
		{"127.0.0.1:0", "", "[::1]:1", unix.EINVAL},
		{"0.0.0.0:0", "", "[::1]:1", unix.EINVAL},
		{"", "203.0.113.9:0", "127.0.0.1:1", unix.EADDRNOTAVAIL},
	} {
		t.Run(c.bind+c.src+c.dst, func(t *testing.T) {
			n := newNode(t)
			h := n.id()
			if c.bind != "" {
				n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr(c.bind)})
			}
			cmd := &cmid.ResolveAddr{Dst: cmid.MustAddr(c.dst)}
			if c.src != "" {
				cmd.Src = cmid.MustAddr(c.src)
			}
			if err := n.in.ids[h].Do(cmd); !errors.Is(err, c.errno) {
				t.Fatalf("%v, want %v", err, c.errno)
			}
			// After any of these errors the identifier is bound, or can be bound, and may try
			// again.
			dst := "127.0.0.1:1"
			if n.in.ids[h].Info().Local.Family() == cmid.FamilyIPv6 {
				dst = "[::1]:1"
			}
			n.do(h, &cmid.ResolveAddr{Dst: cmid.MustAddr(dst)})
			n.wait(h, states.KindAddrResolved)
		})
	}
}

// TestResolveWithoutRoute uses a separate network namespace of its thread, where not even loopback
// is up.
func TestResolveWithoutRoute(t *testing.T) {
	n := newNode(t)
	h := n.id()
	errs := make(chan error)
	go inEmptyNamespace(errs, func() error {
		return n.in.ids[h].Do(&cmid.ResolveAddr{Dst: cmid.MustAddr("192.0.2.77:1")})
	})
	err := <-errs
	if errors.Is(err, unix.EPERM) {
		t.Skip("making a network namespace needs privileges")
	}
	if !errors.Is(err, unix.ENETUNREACH) {
		t.Fatalf("%v, want ENETUNREACH", err)
	}
	if in := n.in.ids[h].Info(); in.Local.Port() == 0 || !in.Local.IsWildcard() || in.Device != "" {
		t.Errorf("after the failure %+v; rdma_cm leaves it bound to the wildcard", in)
	}
}

// TestResolveKeepsTheBinding: the port stays, and a wildcard becomes the source that the route has.
// manpages: resolve_addr-8
func TestResolveKeepsTheBinding(t *testing.T) {
	for _, bind := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		n := newNode(t)
		lh, at := n.listen("127.0.0.1:0")
		h := n.id()
		n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr(bind)})
		port := n.in.ids[h].Info().Local.Port()
		// src is ignored: it is bound
		n.do(h, &cmid.ResolveAddr{Src: cmid.MustAddr("[::1]:5"), Dst: at})
		n.wait(h, states.KindAddrResolved)
		want := fmt.Sprintf("127.0.0.1:%d", port)
		if got := n.in.ids[h].Info().Local.String(); got != want {
			t.Errorf("bound to %s, and resolved to the source %s, want %s", bind, got, want)
		}
		n.qp(h, 0)
		n.do(h, &cmid.Connect{})
		req := n.wait(lh, states.KindConnectRequest)
		if got := n.in.ids[req.child].Info().Peer.String(); got != want || n.in.ids[h].Info().Local.String() != want {
			t.Errorf("bound to %s: the peer sees %s, Info says %v, want %s", bind, got, n.in.ids[h].Info().Local, want)
		}
	}
}

func TestResolveWildcardMeansThisHost(t *testing.T) {
	n := newNode(t)
	for dst, want := range map[string]string{"0.0.0.0:7": "127.0.0.1:7", "[::]:7": "[::1]:7"} {
		h := n.id()
		n.do(h, &cmid.ResolveAddr{Dst: cmid.MustAddr(dst)})
		n.wait(h, states.KindAddrResolved)
		if got := n.in.ids[h].Info().Peer.String(); got != want {
			t.Errorf("%s resolved to %s, want %s", dst, got, want)
		}
	}
}

// TestPortDrawnAgain: if a connection from the port that ResolveAddr chose exists already, another
// port is chosen.
func TestPortDrawnAgain(t *testing.T) {
	n := newNode(t)
	l := rawListen(t)
	h := n.resolve(l.at)
	n.qp(h, 0)
	drawn := n.in.ids[h].Info().Local.Port()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, fd)
	err = errors.Join(
		unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(r.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: int(drawn)}),
		unix.Connect(r.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: int(l.at.Port())}))
	if err != nil {
		t.Fatal(err)
	}
	l.accept(n) // the raw one
	n.do(h, &cmid.Connect{})
	if f := l.accept(n).frame(n); f.Reply {
		t.Errorf("frame %+v", f)
	}
	if got := n.in.ids[h].Info().Local.Port(); got == drawn || got == 0 {
		t.Errorf("connected from port %d, which was taken", got)
	}
}
