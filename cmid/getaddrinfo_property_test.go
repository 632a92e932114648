package cmid

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// checkResult checks the properties of every answer.
func checkResult(t interface{ Fatalf(string, ...any) }, node, service string, hints *AddrInfo, list []AddrInfo, err error) {
	if err != nil {
		var gai *GAIError
		if !errors.As(err, &gai) || gai.Code > EAIBadFlags || gai.Code < EAISystem || list != nil {
			t.Fatalf("%q %q %+v: %v beside %v, want a *GAIError with a code of glibc's", node, service, hints, err, list)
		}
		return
	}
	if len(list) == 0 {
		t.Fatalf("%q %q %+v: neither a result nor an error", node, service, hints)
	}
	if hints == nil {
		hints = &AddrInfo{}
	}
	passive := hints.Flags&RAIPassive != 0
	for i := range list {
		r := &list[i]
		if r.Route != nil || r.Connect != nil || passive && !r.Dst.IsZero() {
			t.Fatalf("%q %q %+v: route, connect data or a passive destination in %+v", node, service, hints, r)
		}
		if node == "" && service == "" {
			continue // a copy of the hints
		}
		a := r.Dst
		if passive {
			a = r.Src
		}
		if r.Family != a.Family() || r.Family == FamilyAny || r.Flags != hints.Flags&RAIPassive {
			t.Fatalf("%q %q %+v: family or flags in %+v", node, service, hints, r)
		}
		if f := hints.Family; (f == FamilyIPv4 || f == FamilyIPv6) && r.Family != f {
			t.Fatalf("%q %q %+v: family %d", node, service, hints, r.Family)
		}
		if r.QPType == QPTypeAny || hints.QPType != QPTypeAny && r.QPType != hints.QPType {
			t.Fatalf("%q %q %+v: queue pair type %d", node, service, hints, r.QPType)
		}
		if r.PortSpace == 0 || hints.PortSpace != 0 && r.PortSpace != hints.PortSpace {
			t.Fatalf("%q %q %+v: port space %v", node, service, hints, r.PortSpace)
		}
		if r.QPType == QPTypeRC && r.PortSpace.Datagram() || r.QPType == QPTypeUD && r.PortSpace == PortSpaceTCP {
			t.Fatalf("%q %q %+v: type %d in port space %v", node, service, hints, r.QPType, r.PortSpace)
		}
		if r.Family == FamilyIB && a.IB.SID>>16 != uint64(r.PortSpace) {
			t.Fatalf("%q %q %+v: service id %#x in port space %v", node, service, hints, a.IB.SID, r.PortSpace)
		}
	}
}

// TestGetAddrInfoProperties asks for everything that can be asked.
// manpages: getaddrinfo-3, getaddrinfo-21, getaddrinfo-30, getaddrinfo-39, getaddrinfo-42
func TestGetAddrInfoProperties(t *testing.T) {
	nodes := []string{
		"", "both", "v4only", "zoned", "empty", "nosuch", "servbad", "broken", "10.0.0.7", "::1", "::", "0.0.0.0", "::ffff:10.0.0.7", "fe80::1%1",
		"10.0.0", "host:1", "[::1]",
	}
	services := []string{"", "0", "7471", "65535", "65536", "http", "ntp", "domain", "nosuch", "-1", "wild"}
	// What mostly succeeds, so that answers are seen and not only errors.
	known, ports := []string{"", "both", "v4only", "10.0.0.7", "::1"}, []string{"", "7471", "http"}
	addrs := []Addr{{}, MustAddr("10.0.0.5:0"), MustAddr("[::1]:9"), gid("fe80::5", 1, 2)}
	succeeded := 0
	property := func(t *rapid.T) {
		node := rapid.OneOf(rapid.SampledFrom(known), rapid.SampledFrom(nodes), rapid.String()).Draw(t, "node")
		service := rapid.OneOf(rapid.SampledFrom(ports), rapid.SampledFrom(services), rapid.String()).Draw(t, "service")
		var hints *AddrInfo
		if rapid.Bool().Draw(t, "with hints") {
			hints = &AddrInfo{
				Flags:     AddrInfoFlags(rapid.OneOf(rapid.Uint32Range(0, 0xF), rapid.Uint32Range(0, 0x4F)).Draw(t, "flags")),
				Family:    rapid.SampledFrom([]Family{FamilyAny, FamilyIPv4, FamilyIPv6, FamilyIB, 1}).Draw(t, "family"),
				QPType:    QPType(rapid.Uint8Range(0, 11).Draw(t, "qp type")),
				PortSpace: rapid.SampledFrom([]PortSpace{0, PortSpaceIPOIB, PortSpaceTCP, PortSpaceUDP, PortSpaceIB, 0x777}).Draw(t, "port space"),
				Src:       rapid.SampledFrom(addrs).Draw(t, "src"),
				Dst:       rapid.SampledFrom(addrs).Draw(t, "dst"),
				Route:     []byte{1},
				Connect:   []byte{2},
			}
		}
		list, err := lookupAddrInfo(t.Context(), newFakeResolver(), node, service, hints)
		checkResult(t, node, service, hints, list, err)
		if err == nil {
			succeeded++
		}
	}
	for range 20 { // rapid's hundred are too few for what few of them ask
		rapid.Check(t, property)
	}
	enough := 100 // of a quarter of the 2000 or so
	if testing.Short() {
		enough /= 5 // rapid asks a fifth
	}
	if succeeded < enough {
		t.Errorf("%d questions were answered: the generator is wrong", succeeded)
	}
}

// FuzzGetAddrInfoLiteral: under RAI_NUMERICHOST no node or service panics, and a node that is
// accepted is an address.
func FuzzGetAddrInfoLiteral(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "fe80::1%1", "::ffff:1.2.3.4", "localhost", "1.2.3", "[::1]", "%", "::%"} {
		f.Add(s, "7471", uint32(RAINumericHost), uint16(0), uint8(0), uint16(0))
		f.Add(s, "", uint32(RAINumericHost|RAIFamily), uint16(FamilyIB), uint8(0), uint16(PortSpaceIB))
	}
	f.Fuzz(func(t *testing.T, node, service string, flags uint32, family uint16, qp uint8, ps uint16) {
		res := newFakeResolver()
		hints := &AddrInfo{Flags: AddrInfoFlags(flags) | RAINumericHost, Family: Family(family), QPType: QPType(qp), PortSpace: PortSpace(ps)}
		list, err := lookupAddrInfo(t.Context(), res, node, service, hints)
		checkResult(t, node, service, hints, list, err)
		if len(res.asked) != 0 {
			t.Fatalf("%q: the resolver was asked for %q", node, res.asked)
		}
		if err == nil && node != "" {
			if _, bad := netip.ParseAddr(node); bad != nil {
				t.Fatalf("%q was taken for an address", node)
			}
		}
	})
}
