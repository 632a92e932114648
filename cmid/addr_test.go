package cmid

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseAddr(t *testing.T) {
	for _, s := range []string{
		"127.0.0.1:7471", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:7471", "[::]:0", "[fe80::1%eth0]:7471", "[fe80::1%2147483647]:7471",
		"[::ffff:10.0.0.7]:7471",
	} {
		a, err := ParseAddr(s)
		if err != nil || a.String() != s || a.IB != nil {
			t.Errorf("%s: got %v, %v", s, a, err)
		}
	}
	for _, s := range []string{
		"", ":", ":7471", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http", "localhost:7471", "::1:7471",
		"[::1]", "[127.0.0.1]:7471", "127.1:7471", "010.0.0.1:7471", "10.0.0.256:1", "[::1%]:1", " 127.0.0.1:7471",
	} {
		a, err := ParseAddr(s)
		if !errors.Is(err, unix.EINVAL) || !a.IsZero() {
			t.Errorf("%q: got %v, %v, want EINVAL", s, a, err)
		}
	}
	_, err := ParseAddr("server:7471")
	want := `address "server:7471": want IP:PORT such as 127.0.0.1:7471 or [::1]:7471 (names are for GetAddrInfo): invalid argument`
	if err == nil || err.Error() != want {
		t.Errorf("message:\n got %v\nwant %s", err, want)
	}
}

// A zone may be an interface's name or its number. Both give the same address.
func TestZones(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Fatalf("no interfaces: %v", err)
	}
	for _, i := range all {
		name, number := "fe80::1%"+i.Name, fmt.Sprintf("fe80::1%%%d", i.Index)
		if a, b := MustAddr("["+number+"]:7471"), MustAddr("["+name+"]:7471"); a != b {
			t.Errorf("ParseAddr: %v and %v", a, b)
		}
		var found [2]Addr
		for n, node := range []string{name, number} {
			info, err := LookupAddrInfo(t.Context(), node, "7471", nil)
			if err != nil || len(info) != 1 {
				t.Fatalf("%s: %v, %v", node, info, err)
			}
			found[n] = info[0].Dst
		}
		if found[0] != found[1] || found[0] != MustAddr("["+name+"]:7471") {
			t.Errorf("GetAddrInfo: %v", found)
		}
	}
}

func TestMustAddr(t *testing.T) {
	if a := MustAddr("[::1]:7471"); a != AddrFrom(netip.IPv6Loopback(), 7471) {
		t.Errorf("got %v", a)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, unix.EINVAL) {
			t.Errorf("panicked with %v, want ParseAddr's error", err)
		}
	}()
	MustAddr("localhost:7471")
}

// TestAddrKinds has a row for each kind of sockaddr.
func TestAddrKinds(t *testing.T) {
	rows := []struct {
		name       string
		addr       Addr
		family     Family
		port       uint16
		zero, wild bool
		text       string
	}{
		{"NULL", Addr{}, FamilyAny, 0, true, false, ""},
		{"IPv4", MustAddr("10.0.0.7:7471"), FamilyIPv4, 7471, false, false, "10.0.0.7:7471"},
		{"IPv4 wildcard", MustAddr("0.0.0.0:7471"), FamilyIPv4, 7471, false, true, "0.0.0.0:7471"},
		{"IPv4 wildcard, any port", MustAddr("0.0.0.0:0"), FamilyIPv4, 0, false, true, "0.0.0.0:0"},
		{"IPv6", MustAddr("[2001:db8::7]:7471"), FamilyIPv6, 7471, false, false, "[2001:db8::7]:7471"},
		{"IPv6 wildcard", MustAddr("[::]:0"), FamilyIPv6, 0, false, true, "[::]:0"},
		{"IPv6 wildcard with zone", MustAddr("[::%eth0]:1"), FamilyIPv6, 1, false, true, "[::%eth0]:1"},
		{"IPv6 link-local", MustAddr("[fe80::1%eth0]:1"), FamilyIPv6, 1, false, false, "[fe80::1%eth0]:1"},
		{"IPv4-mapped", MustAddr("[::ffff:10.0.0.7]:1"), FamilyIPv6, 1, false, false, "[::ffff:10.0.0.7]:1"},
		{"IPv4-mapped wildcard is a specific IPv6 address", MustAddr("[::ffff:0.0.0.0]:1"), FamilyIPv6, 1, false, false, "[::ffff:0.0.0.0]:1"},
		{"AF_IB", gid("fe80::2", 0x01061d2f, allOnes), FamilyIB, 7471, false, false, "[fe80::2]/0x1061d2f"},
		{"AF_IB wildcard", gid("::", 0x01060000, portZero), FamilyIB, 0, false, true, "[::]/0x1060000"},
		{"port without address", AddrFrom(netip.Addr{}, 5), FamilyAny, 5, false, false, "invalid AddrPort"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			a := r.addr
			if a.Family() != r.family || a.Port() != r.port || a.IsZero() != r.zero || a.IsWildcard() != r.wild || a.String() != r.text {
				t.Errorf("family %d port %d zero %v wildcard %v text %q, want %d %d %v %v %q",
					a.Family(), a.Port(), a.IsZero(), a.IsWildcard(), a.String(), r.family, r.port, r.zero, r.wild, r.text)
			}
			for _, o := range rows {
				if got := a.SameFamily(o.addr); got != (r.family == o.family) {
					t.Errorf("same family as %s: %v", o.name, got)
				}
			}
		})
	}
}

func TestPortSpace(t *testing.T) {
	rows := []struct {
		ps       PortSpace
		text     string
		datagram bool
	}{
		{0, "TCP", false},
		{PortSpaceTCP, "TCP", false},
		{PortSpaceUDP, "UDP", true},
		{PortSpaceIPOIB, "IPOIB", true},
		{PortSpaceIB, "IB", false},
		{0x777, "PortSpace(0x777)", false},
	}
	for _, r := range rows {
		if r.ps.String() != r.text || r.ps.Datagram() != r.datagram {
			t.Errorf("%#x: %v, datagram %v, want %s, %v", uint16(r.ps), r.ps, r.ps.Datagram(), r.text, r.datagram)
		}
	}
}

// FuzzParseAddr: no text panics; what parses is a literal with a family and survives its own
// String.
func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"127.0.0.1:7471", "[::1]:7471", "[fe80::1%eth0]:1", "[::ffff:1.2.3.4]:0", "localhost:1", ":1", "[::1", "1.2.3.4:99999", "[::%%]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddr(s)
		if err != nil {
			if !errors.Is(err, unix.EINVAL) || !a.IsZero() {
				t.Fatalf("%q: %v, %v, want EINVAL and no address", s, a, err)
			}
			return
		}
		if a.Family() != FamilyIPv4 && a.Family() != FamilyIPv6 || a.IsZero() {
			t.Fatalf("%q: family %d", s, a.Family())
		}
		again, err := ParseAddr(a.String())
		if err != nil || again != a {
			t.Fatalf("%q is %v, which is %v, %v", s, a, again, err)
		}
		if strings.HasPrefix(s, "[") != (a.Family() == FamilyIPv6) {
			t.Fatalf("%q: brackets belong to IPv6, family is %d", s, a.Family())
		}
	})
}

// Source is the key under which a peer's connections are counted.
func TestAddrSource(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:7": "10.0.0.1", "[::ffff:10.0.0.1]:7": "10.0.0.1", "[fe80::1%eth0]:7": "fe80::1%eth0", "[2001:db8:1:2:3::4]:9": "2001:db8:1:2::",
	} {
		if got := MustAddr(addr).Source().String(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
