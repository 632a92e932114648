package iwarp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/states"
)

func TestBindReservesAPort(t *testing.T) {
	n := newNode(t)
	h := n.id()
	n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
	in := n.in.ids[h].Info()
	if in.Local.Port() == 0 || in.Device != "iwarp0" || in.Port != 1 || n.in.ids[h].Device() == nil {
		t.Fatalf("bound to port 0: %+v; want a port, and the device", in)
	}
	if l, err := net.Listen("tcp", in.Local.String()); err == nil {
		l.Close()
		t.Errorf("another program could take %v, which is reserved", in.Local)
	}
	if err := n.in.ids[h].Do(&cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")}); err != unix.EINVAL {
		t.Errorf("second bind: %v, want EINVAL", err)
	}
	n.do(h, &cmid.DestroyID{})
	l, err := net.Listen("tcp", in.Local.String())
	if err != nil {
		t.Fatalf("the port is not free after DestroyID: %v", err)
	}
	l.Close()
}

func TestBindAddresses(t *testing.T) {
	for _, c := range []struct {
		addr   string
		errno  error
		device string
	}{
		{"0.0.0.0:0", nil, ""},
		{"[::]:0", nil, ""},
		{"127.0.0.1:0", nil, "iwarp0"}, // rdma_cm attaches none to loopback
		{"[::1]:0", nil, "iwarp0"},
		{"203.0.113.9:0", unix.EADDRNOTAVAIL, ""},
		{"0.1.2.3:0", unix.EADDRNOTAVAIL, ""},
		{"224.0.0.1:0", unix.EADDRNOTAVAIL, ""},
		{"255.255.255.255:0", unix.EADDRNOTAVAIL, ""},
		{"[ff02::1%lo]:0", unix.EADDRNOTAVAIL, ""},
		{"[2001:db8::9]:0", unix.EADDRNOTAVAIL, ""},
		{"[fe80::1]:0", unix.EINVAL, ""},
		{"[fe80::1%nosuchif0]:0", unix.ENODEV, ""},
	} {
		t.Run(c.addr, func(t *testing.T) {
			n := newNode(t)
			h := n.id()
			if err := n.in.ids[h].Do(&cmid.BindAddr{Addr: cmid.MustAddr(c.addr)}); !errors.Is(err, c.errno) {
				t.Fatalf("bind: %v, want %v", err, c.errno)
			}
			if in := n.in.ids[h].Info(); in.Device != c.device {
				t.Errorf("device %q, want %q", in.Device, c.device)
			}
			if c.errno != nil { // the identifier may try again
				n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
			}
		})
	}
	n := newNode(t)
	if err := n.in.ids[n.id()].Do(&cmid.BindAddr{Addr: cmid.Addr{IB: &cmid.SockaddrIB{}}}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("AF_IB: %v, want EINVAL", err)
	}
}

func TestBindLinkLocal(t *testing.T) {
	addr := ""
	ifs, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range ifs {
		as, _ := i.Addrs()
		for _, a := range as {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.IsLinkLocalUnicast() && ip.IP.To4() == nil {
				addr = fmt.Sprintf("[%s%%%s]:0", ip.IP, i.Name)
			}
		}
	}
	if addr == "" {
		t.Skip("no interface of this host has a link-local IPv6 address to bind to")
	}
	n := newNode(t)
	lh, at := n.listen(addr)
	if at.Addr().Zone() == "" {
		t.Fatalf("bound to %v: the zone is lost", at)
	}
	p := connectTo(t, n, n, lh, at, 1)
	if got := n.in.ids[p.sh].Info().Peer; got != n.in.ids[p.ch].Info().Local {
		t.Errorf("the listener sees its peer at %v, which is at %v", got, n.in.ids[p.ch].Info().Local)
	}
}

// TestPortConflicts is the table of rdma_cm for two identifiers on one port.
func TestPortConflicts(t *testing.T) {
	const (
		plain = iota
		reuse
		afonly
	)
	other := hostAddr(t)
	for _, c := range []struct {
		first, second string
		option        int
		errno         error
	}{
		{"0.0.0.0", "0.0.0.0", plain, unix.EADDRNOTAVAIL},
		{"0.0.0.0", "127.0.0.1", plain, unix.EADDRNOTAVAIL},
		{"127.0.0.1", "0.0.0.0", plain, unix.EADDRNOTAVAIL},
		{"127.0.0.1", "127.0.0.1", plain, unix.EADDRNOTAVAIL},
		{"127.0.0.1", other, plain, unix.EADDRNOTAVAIL},
		{"[::]", "0.0.0.0", plain, unix.EADDRNOTAVAIL},
		{"0.0.0.0", "[::]", plain, unix.EADDRNOTAVAIL},
		{other, other, plain, unix.EADDRINUSE},
		{"0.0.0.0", "0.0.0.0", reuse, nil},
		{other, other, reuse, nil},
		{"0.0.0.0", "[::]", afonly, nil},
		{"[::]", other, afonly, nil},
	} {
		t.Run(fmt.Sprint(c.first, c.second, c.option), func(t *testing.T) {
			n := newNode(t)
			bind := func(host string, port uint16) (cmid.Handle, error) {
				h := n.id()
				if c.option == reuse {
					n.do(h, &cmid.SetOption{Option: cmid.OptionReuseAddr, Value: 1})
				}
				if c.option == afonly {
					n.do(h, &cmid.SetOption{Option: cmid.OptionAFOnly, Value: 1})
				}
				return h, n.in.ids[h].Do(&cmid.BindAddr{Addr: cmid.MustAddr(host + ":" + strconv.Itoa(int(port)))})
			}
			h, err := bind(c.first, 0)
			if err != nil {
				t.Fatal(err)
			}
			h2, err := bind(c.second, n.in.ids[h].Info().Local.Port())
			if !errors.Is(err, c.errno) {
				t.Fatalf("bind: %v, want %v", err, c.errno)
			}
			if c.option == reuse { // REUSEADDR does not let anybody listen on a shared port
				if err := n.in.ids[h2].Do(&cmid.Listen{}); !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EADDRINUSE) {
					t.Errorf("listen on a shared port: %v", err)
				}
				n.do(h, &cmid.DestroyID{})
				n.do(h2, &cmid.Listen{})
			}
		})
	}
}

// hostAddr returns an IPv4 address of this host that is not loopback.
func hostAddr(t *testing.T) string {
	t.Helper()
	as, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range as {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	t.Skip("this host has no IPv4 address but loopback")
	return ""
}

func TestBindForeignPort(t *testing.T) {
	foreign, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	n := newNode(t)
	h := n.id()
	taken := cmid.MustAddr(foreign.Addr().String())
	if err := n.in.ids[h].Do(&cmid.BindAddr{Addr: taken}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("bind to another program's port: %v, want EADDRINUSE", err)
	}
	// the failed bind has left nothing in the table
	n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
	foreign.Close()
	n.do(n.id(), &cmid.BindAddr{Addr: taken})
}

// TestBindPrivilegedPort runs on a thread without CAP_NET_BIND_SERVICE, which ends with the test.
func TestBindPrivilegedPort(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if err != nil {
		t.Fatal(err)
	}
	start, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if start < 2 {
		t.Skip("this host has no privileged ports (net.ipv4.ip_unprivileged_port_start)")
	}
	n := newNode(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&hdr, &none[0]); err != nil {
			done <- err
			return
		}
		h := n.NewHandle()
		if _, err := n.inst.CreateID(h, 0, cmid.QPTypeRC); err != nil {
			done <- err
			return
		}
		done <- n.in.ids[h].Do(&cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:1")})
	}()
	if err := <-done; !errors.Is(err, unix.EACCES) {
		t.Errorf("bind to port 1 without privilege: %v, want EACCES", err)
	}
}

func TestDatagramPortSpaces(t *testing.T) {
	n := newNode(t)
	for _, ps := range []cmid.PortSpace{cmid.PortSpaceUDP, cmid.PortSpaceIPOIB, cmid.PortSpaceIB} {
		if _, err := n.inst.CreateID(n.NewHandle(), ps, cmid.QPTypeRC); !errors.Is(err, unix.EPROTONOSUPPORT) {
			t.Errorf("%v: %v, want EPROTONOSUPPORT", ps, err)
		}
	}
}

func TestOptions(t *testing.T) {
	n := newNode(t)
	for _, bad := range []*cmid.SetOption{
		{Option: cmid.OptionTOS, Value: 256},
		{Option: cmid.OptionTOS, Value: -1},
		{Option: cmid.OptionReuseAddr, Value: 2},
		{Option: cmid.OptionAFOnly, Value: -1},
		{Option: cmid.OptionAckTimeout, Value: 32},
	} {
		if err := n.in.ids[n.id()].Do(bad); err != unix.EINVAL {
			t.Errorf("option %d = %d: %v, want EINVAL", bad.Option, bad.Value, err)
		}
	}
	lh := n.id()
	n.do(lh, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
	n.do(lh, &cmid.SetOption{Option: cmid.OptionTOS, Value: 0x68}) // after bind: the socket exists
	n.do(lh, &cmid.SetOption{Option: cmid.OptionAckTimeout, Value: 19})
	n.do(lh, &cmid.Listen{})
	p := connectTo(t, n, n, lh, n.in.ids[lh].Info().Local, 1)
	for what, o := range map[string]struct{ fd, level, opt, want int }{
		"TOS of the accepted socket":          {n.in.ids[p.sh].conn.fd, unix.IPPROTO_IP, unix.IP_TOS, 0x68},
		"TCP_NODELAY of the accepted socket":  {n.in.ids[p.sh].conn.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		"TCP_USER_TIMEOUT of the accepted":    {n.in.ids[p.sh].conn.fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30000},
		"SO_KEEPALIVE of the accepted":        {n.in.ids[p.sh].conn.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"TCP_NODELAY of the connected socket": {n.in.ids[p.ch].conn.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		"SO_KEEPALIVE of the connected":       {n.in.ids[p.ch].conn.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	} {
		checkOption(t, what, o.fd, o.level, o.opt, o.want)
	}
	if p := n.in.ids[p.sh].Path(); p != (cmid.Path{TrafficClass: 0x68}) {
		t.Errorf("the path of the accepted connection is %+v, want the listener's TOS", p)
	}
}

func checkOption(t *testing.T, what string, fd, level, opt, want int) {
	t.Helper()
	if got, err := unix.GetsockoptInt(fd, level, opt); err != nil || got != want {
		t.Errorf("%s is %d (%v), want %d", what, got, err, want)
	}
}

// TestWatched: TCP gives up no peer for its closed window if the owner checks the peer. A
// connecting side whose owner announces that at Established has never had TCP's own checks.
func TestWatched(t *testing.T) {
	for _, c := range []struct {
		early, accepted bool
		keepAlive       int
	}{{early: true, keepAlive: 0}, {early: false, keepAlive: 1}, {accepted: true, keepAlive: 1}} {
		n := newNode(t)
		lh, addr := n.listen("127.0.0.1:0")
		var watched *conn
		n.react = func(d delivered) {
			if id := n.in.ids[d.h]; c.early && d.kind == states.KindEstablished && !id.child {
				watched = id.conn
				watched.qp.Watched()
			}
		}
		p := connectTo(t, n, n, lh, addr, 1)
		switch {
		case c.accepted:
			watched = n.in.ids[p.sh].conn
		case !c.early:
			watched = n.in.ids[p.ch].conn
		}
		if !c.early {
			checkOption(t, "TCP_USER_TIMEOUT before Watched", watched.fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30000)
			watched.qp.Watched()
		}
		checkOption(t, "TCP_USER_TIMEOUT", watched.fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
		checkOption(t, "SO_KEEPALIVE", watched.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, c.keepAlive)
	}
}

func TestAFOnly(t *testing.T) {
	for _, late := range []bool{false, true} {
		n := newNode(t)
		lh := n.id()
		only := &cmid.SetOption{Option: cmid.OptionAFOnly, Value: 1}
		if !late {
			n.do(lh, only)
		}
		n.do(lh, &cmid.BindAddr{Addr: cmid.MustAddr("[::]:0")})
		port := n.in.ids[lh].Info().Local.Port()
		if late {
			n.do(lh, only)
		}
		n.do(lh, &cmid.Listen{})
		if got := n.in.ids[lh].Info().Local.Port(); got != port {
			t.Fatalf("port %d became %d", port, got)
		}
		v4 := cmid.MustAddr(fmt.Sprintf("127.0.0.1:%d", port))
		if c, err := net.Dial("tcp", v4.String()); err == nil {
			c.Close()
			t.Errorf("late %t: an AFONLY listener took an IPv4 connection", late)
		}
		connectTo(t, n, n, lh, cmid.MustAddr(fmt.Sprintf("[::1]:%d", port)), 1)
	}
}

func TestDualStackListener(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("[::]:0")
	if n.in.ids[lh].Device() != nil {
		t.Error("a wildcard listener has a device")
	}
	p := connectTo(t, n, n, lh, cmid.MustAddr(fmt.Sprintf("127.0.0.1:%d", at.Port())), 1)
	if in := n.in.ids[p.sh].Info(); in.Local.String() != fmt.Sprintf("127.0.0.1:%d", at.Port()) || in.Peer != n.in.ids[p.ch].Info().Local || in.Device != "iwarp0" {
		t.Errorf("child of an IPv4 peer on ::: %+v, want IPv4 addresses and the device", in)
	}
}

// withoutOption is a Stack whose kernel refuses an option.
type withoutOption struct {
	sockets.Stack
	level, option int
}

func (s withoutOption) SetOption(fd, level, opt, value int) error {
	if level == s.level && opt == s.option {
		return unix.ENOPROTOOPT
	}
	return s.Stack.SetOption(fd, level, opt, value)
}

// TestRefusedOptions: an identifier whose option the kernel refuses is not bound, and the error
// names the option.
func TestRefusedOptions(t *testing.T) {
	for name, c := range map[string]struct {
		level, option int
		at            string
		set           cmid.SetOption
	}{
		"SO_REUSEADDR": {unix.SOL_SOCKET, unix.SO_REUSEADDR, "127.0.0.1:0", cmid.SetOption{Option: cmid.OptionReuseAddr, Value: 1}},
		"IPV6_V6ONLY":  {unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, "[::1]:0", cmid.SetOption{Option: cmid.OptionAFOnly, Value: 1}},
		"IP_TOS":       {unix.IPPROTO_IP, unix.IP_TOS, "127.0.0.1:0", cmid.SetOption{Option: cmid.OptionTOS, Value: 8}},
	} {
		n := newNode(t)
		n.in.sys = withoutOption{n.in.sys, c.level, c.option}
		h := n.id()
		n.do(h, &c.set)
		err := n.in.ids[h].Do(&cmid.BindAddr{Addr: cmid.MustAddr(c.at)})
		if !errors.Is(err, unix.ENOPROTOOPT) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
