package device

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// fakeHost is a host with these RDMA devices.
type fakeHost struct {
	devices map[string]string // indexed by address
	err     error             // instead
	from    string            // the source of every connection
	all     []string          // addresses
	asked   int
}

func (f *fakeHost) findDevice(local netip.Addr) (string, bool, error) {
	f.asked++
	name, ok := f.devices[local.String()]
	return name, ok, f.err
}

func (f *fakeHost) sourceFor(netip.Addr) (netip.Addr, error) {
	if f.from == "" {
		return netip.Addr{}, errors.New("network is unreachable")
	}
	return netip.MustParseAddr(f.from), nil
}

func (f *fakeHost) hostAddrs() (list []netip.Addr, err error) {
	for _, a := range f.all {
		list = append(list, netip.MustParseAddr(a))
	}
	return list, nil
}

var (
	soft  = map[string]string{"10.10.1.1": "rxe0", "10.10.1.2": "rxe0", "10.10.2.1": "siw0"}
	every = []string{"10.10.9.1", "10.10.1.1", "10.10.1.2", "10.10.2.1"}
)

func addr(s string) (a netip.Addr) {
	if s != "" {
		a = netip.MustParseAddr(s)
	}
	return a
}

func TestDialling(t *testing.T) {
	closed := errors.New("rdma_cm: permission denied")
	for _, c := range []struct {
		kind        Kind
		host        fakeHost
		local, peer string
		want        string
		wantLocal   string
	}{
		{Auto, fakeHost{devices: soft, from: "10.10.1.1"}, "", "10.10.1.7", "device: kernel (rxe0 has 10.10.1.1)", "10.10.1.1"},
		{Auto, fakeHost{devices: soft, from: "10.10.9.1"}, "", "10.10.9.7", "device: iwarp (no RDMA device has 10.10.9.1)", "10.10.9.1"},
		{Auto, fakeHost{devices: soft, from: "10.10.9.1"}, "10.10.2.1", "10.10.9.7", "device: kernel (siw0 has 10.10.2.1)", "10.10.2.1"},
		{Auto, fakeHost{devices: soft, from: "10.10.1.2"}, "0.0.0.0", "10.10.1.2", "device: kernel (rxe0 has 10.10.1.2)", "10.10.1.2"},
		{Auto, fakeHost{err: closed, from: "127.0.0.1"}, "", "127.0.0.1", "device: iwarp (no RDMA device has 127.0.0.1)", "127.0.0.1"},
		{Auto, fakeHost{err: closed, from: "10.0.0.1"}, "", "10.0.0.2", "device: iwarp (no kernel devices: rdma_cm: permission denied)", "10.0.0.1"},
		{IWARP, fakeHost{devices: soft, from: "10.10.1.1"}, "", "10.10.1.7", "device: iwarp", "10.10.1.1"},
		{Kernel, fakeHost{devices: soft, from: "10.10.9.1"}, "", "10.10.9.7", "device: kernel", "10.10.9.1"},
	} {
		got, err := chooseForDial(&c.host, c.kind, addr(c.local), addr(c.peer))
		if err != nil || got.String() != c.want || got.Local != addr(c.wantLocal) {
			t.Errorf("%s from %q to %s: %v from %v, %v; want %s from %s", c.kind, c.local, c.peer, got, got.Local, err, c.want, c.wantLocal)
		}
	}
	if c, err := chooseForDial(&fakeHost{}, Auto, netip.Addr{}, addr("192.0.2.1")); err == nil || !strings.Contains(err.Error(), "no way to 192.0.2.1: network is unreachable") {
		t.Errorf("without a route: %v, %v; want an error that says so", c, err)
	}
}

func TestListening(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		host  fakeHost
		local string
		want  string
	}{
		{Auto, fakeHost{devices: soft, all: every}, "10.10.2.1", "device: kernel (siw0 has 10.10.2.1)"},
		{Auto, fakeHost{devices: soft, all: every}, "10.10.9.1", "device: iwarp (no RDMA device has 10.10.9.1)"},
		{Auto, fakeHost{devices: soft, all: every}, "::1", "device: iwarp (no RDMA device has ::1)"},
		{Auto, fakeHost{devices: soft, all: every}, "0.0.0.0", "device: kernel (rxe0 has 10.10.1.1, siw0 has 10.10.2.1; other addresses need --device iwarp)"},
		{Auto, fakeHost{devices: soft, all: every}, "", "device: kernel (rxe0 has 10.10.1.1, siw0 has 10.10.2.1; other addresses need --device iwarp)"},
		{Auto, fakeHost{all: every}, "::", "device: iwarp (no RDMA device has an address of this host)"},
		{Auto, fakeHost{all: every, err: errors.New("no such file")}, "::", "device: iwarp (no kernel devices: no such file)"},
		{IWARP, fakeHost{devices: soft, all: every}, "0.0.0.0", "device: iwarp"},
		{Kernel, fakeHost{}, "10.10.9.1", "device: kernel"},
	} {
		got, err := chooseForListen(&c.host, c.kind, addr(c.local))
		if err != nil || got.String() != c.want || got.Local != addr(c.local) {
			t.Errorf("%s on %q: %v on %v, %v; want %s", c.kind, c.local, got, got.Local, err, c.want)
		}
		if c.kind != Auto && c.host.asked > 0 {
			t.Errorf("%s on %q: the kernel was asked for devices although the user has chosen", c.kind, c.local)
		}
	}
}

func TestAny(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		host fakeHost
		want string // the address, or the error
	}{
		{Auto, fakeHost{devices: soft, all: every}, "device: kernel (rxe0 has 10.10.1.1) 10.10.1.1"},
		{Auto, fakeHost{all: every}, "device: iwarp (no RDMA device has an address of this host) 127.0.0.1"},
		{Auto, fakeHost{all: every, err: errors.New("no such file")}, "device: iwarp (no kernel devices: no such file) 127.0.0.1"},
		{IWARP, fakeHost{devices: soft, all: every}, "device: iwarp 127.0.0.1"},
		{Kernel, fakeHost{devices: soft, all: every}, "device: kernel 10.10.1.1"},
		{Kernel, fakeHost{all: every}, "--device kernel: no RDMA device has an address of this host"},
		{Kernel, fakeHost{all: every, err: errors.New("no such file")}, "no such file"},
		{"rxe0", fakeHost{all: every}, "--device rxe0: want auto, iwarp or kernel"},
	} {
		got, err := chooseAny(&c.host, c.kind)
		said := got.String() + " " + got.Local.String()
		if err != nil {
			said = err.Error()
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %s; want %s", c.kind, said, c.want)
		}
	}
}

// TestThisHost: functions that need no RDMA device.
func TestThisHost(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "127.0.0.5"} {
		from, err := thisHost{}.sourceFor(addr(ip))
		if err != nil || !from.Is4() || !from.IsLoopback() {
			t.Errorf("connections to %s come from %v, %v; want loopback", ip, from, err)
		}
	}
	if _, err := (thisHost{}).hostAddrs(); err != nil {
		t.Errorf("the host's addresses: %v", err)
	}
}

// TestNamed: without RDMA devices the choice is clear for loopback; only Auto looks names up.
func TestNamed(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		addr    string
		passive bool
		want    string
	}{
		{Auto, "127.0.0.1:7471", true, "device: iwarp (no RDMA device has 127.0.0.1)"},
		{Auto, "127.0.0.1:7471", false, "device: iwarp (no RDMA device has 127.0.0.1)"},
		{Auto, "no port", false, "missing port"},
		{IWARP, "nobody.invalid:1", false, "device: iwarp"},
		{Kernel, "nobody.invalid:1", true, "device: kernel"},
		{"", "127.0.0.1:7471", true, "want auto, iwarp or kernel"},
	} {
		got, err := Named(t.Context(), c.kind, c.addr, c.passive)
		said := got.String()
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s for %s: %s; want %s", c.kind, c.addr, said, c.want)
		}
	}
}

// routed is a host with a route to some addresses only.
type routed struct {
	fakeHost
	sources map[string]string // indexed by peer
}

func (h *routed) sourceFor(peer netip.Addr) (netip.Addr, error) {
	if from, ok := h.sources[peer.String()]; ok {
		return netip.MustParseAddr(from), nil
	}
	return netip.Addr{}, errors.New("network is unreachable")
}

// TestDiallingAny: of several addresses the first one does not decide alone, nor one without a
// route.
func TestDiallingAny(t *testing.T) {
	h := &routed{fakeHost{devices: soft}, map[string]string{"10.10.9.7": "10.10.9.1", "10.10.8.7": "10.10.8.1", "10.10.1.7": "10.10.1.1"}}
	for _, c := range []struct{ peers, want string }{
		{"10.10.9.7", "device: iwarp (no RDMA device has 10.10.9.1)"},
		{"2001:db8::2 10.10.9.7", "device: iwarp (no RDMA device has 10.10.9.1)"},
		{"10.10.9.7 10.10.8.7", "device: iwarp (no RDMA device has 10.10.9.1)"},
		{"2001:db8::2 10.10.9.7 10.10.1.7", "device: kernel (rxe0 has 10.10.1.1)"},
		{"2001:db8::2 2001:db8::3", "no way to 2001:db8::2: network is unreachable\nno way to 2001:db8::3: network is unreachable"},
	} {
		var list []cmid.Addr
		for _, p := range strings.Fields(c.peers) {
			list = append(list, cmid.AddrFrom(addr(p), 7471))
		}
		got, err := diallingAny(h, list)
		said := got.String()
		if err != nil {
			said = err.Error()
		}
		if said != c.want {
			t.Errorf("%s: %q, want %q", c.peers, said, c.want)
		}
	}
}

// TestLinkLocalWithoutZone: the error names the missing zone.
func TestLinkLocalWithoutZone(t *testing.T) {
	for _, k := range []Kind{Auto, IWARP, Kernel} {
		_, err := Dialling(k, netip.Addr{}, addr("fe80::1"))
		if !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "add %INTERFACE, as in fe80::1%eth0") {
			t.Errorf("--device %s: %v", k, err)
		}
	}
}
