package cmid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fakeResolver knows a few names and services, and counts the lookups. No test reaches a name
// server.
type fakeResolver struct {
	hosts map[string]any // []string or error
	ports map[string]int // "tcp/http"
	asked []string
}

func (r *fakeResolver) LookupIPAddr(_ context.Context, host string) ([]net.IPAddr, error) {
	r.asked = append(r.asked, host)
	switch v := r.hosts[host].(type) {
	case error:
		return nil, v
	case []string:
		var out []net.IPAddr
		for _, s := range v {
			ip := netip.MustParseAddr(s)
			out = append(out, net.IPAddr{IP: net.ParseIP(ip.WithZone("").String()), Zone: ip.Zone()})
		}
		return out, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (r *fakeResolver) LookupPort(_ context.Context, network, service string) (int, error) {
	if p, ok := r.ports[network+"/"+service]; ok {
		return p, nil
	}
	return 0, &net.DNSError{Err: "unknown port", Name: network + "/" + service, IsNotFound: true}
}

func newFakeResolver() *fakeResolver {
	return &fakeResolver{
		hosts: map[string]any{
			"both":    []string{"2001:db8::7", "10.0.0.7"},
			"v4only":  []string{"10.0.0.4", "10.0.1.4"},
			"zoned":   []string{"fe80::9%" + anInterface()},
			"empty":   []string{},
			"servbad": &net.DNSError{Err: "server misbehaving", Name: "servbad", IsTemporary: true},
			"slow":    &net.DNSError{Err: "i/o timeout", Name: "slow", IsTimeout: true},
			"broken":  &net.DNSError{Err: "cannot unmarshal DNS message", Name: "broken"},
			"nofiles": &net.OpError{Op: "dial", Net: "udp", Err: unix.EMFILE},
			"late":    fmt.Errorf("lookup late: %w", context.DeadlineExceeded),
			"stopped": fmt.Errorf("lookup stopped: %w", context.Canceled),
		},
		ports: map[string]int{"tcp/http": 80, "udp/ntp": 123, "tcp/domain": 53, "udp/domain": 53, "tcp/last": 65535, "tcp/wild": 70000},
	}
}

// anInterface returns the name of a network interface that this machine has.
func anInterface() string {
	list, err := net.Interfaces()
	if err != nil || len(list) == 0 {
		panic("no network interface")
	}
	return list[0].Name
}

// ai writes an expected result: its source and destination, "" for none.
func ai(flags AddrInfoFlags, f Family, qp QPType, ps PortSpace, src, dst string) AddrInfo {
	a := AddrInfo{Flags: flags, Family: f, QPType: qp, PortSpace: ps}
	if src != "" {
		a.Src = MustAddr(src)
	}
	if dst != "" {
		a.Dst = MustAddr(dst)
	}
	return a
}

func rcDst(dst string) AddrInfo {
	a := MustAddr(dst)
	return AddrInfo{Family: a.Family(), QPType: QPTypeRC, PortSpace: PortSpaceTCP, Dst: a}
}

func rcSrc(src string) AddrInfo {
	a := MustAddr(src)
	return AddrInfo{Flags: RAIPassive, Family: a.Family(), QPType: QPTypeRC, PortSpace: PortSpaceTCP, Src: a}
}

func gid(ip string, sid, mask uint64) Addr {
	return Addr{IB: &SockaddrIB{PKey: 0xFFFF, GID: netip.MustParseAddr(ip).As16(), SID: sid, SIDMask: mask}}
}

var cmpAddrInfo = cmp.Comparer(func(a, b Addr) bool {
	if (a.IB == nil) != (b.IB == nil) || a.AddrPort != b.AddrPort {
		return false
	}
	return a.IB == nil || *a.IB == *b.IB
})

const (
	allOnes  = ^uint64(0)
	portZero = ^uint64(0xFFFF) // a service id mask that leaves the port out
)

// TestGetAddrInfo has one row for each thing that rdma_getaddrinfo(3) or librdmacm promises.
// manpages: getaddrinfo-3, getaddrinfo-24
func TestGetAddrInfo(t *testing.T) {
	local := MustAddr("10.0.0.5:0")
	ibHints := &AddrInfo{Flags: RAIFamily | RAINumericHost, Family: FamilyIB}
	rows := []struct {
		name          string
		node, service string
		hints         *AddrInfo
		want          []AddrInfo
	}{
		// What node and service mean.
		// manpages: getaddrinfo-1, getaddrinfo-2, getaddrinfo-5, getaddrinfo-23
		// manpages: getaddrinfo-33, getaddrinfo-36
		{"node and service without hints", "10.0.0.7", "7471", nil, []AddrInfo{rcDst("10.0.0.7:7471")}},
		{"node and service with zero hints", "10.0.0.7", "7471", &AddrInfo{}, []AddrInfo{rcDst("10.0.0.7:7471")}},
		// manpages: getaddrinfo-1
		{"IPv6 node", "2001:db8::7", "7471", nil, []AddrInfo{rcDst("[2001:db8::7]:7471")}},
		// manpages: getaddrinfo-2
		{"node only has port 0", "10.0.0.7", "", nil, []AddrInfo{rcDst("10.0.0.7:0")}},
		// manpages: getaddrinfo-1
		{"service only is loopback", "", "7471", nil, []AddrInfo{rcDst("[::1]:7471"), rcDst("127.0.0.1:7471")}},
		{"service only with AF_INET", "", "7471", &AddrInfo{Family: FamilyIPv4}, []AddrInfo{rcDst("127.0.0.1:7471")}},
		// manpages: getaddrinfo-30
		{"service only with AF_INET6", "", "7471", &AddrInfo{Family: FamilyIPv6}, []AddrInfo{rcDst("[::1]:7471")}},
		// manpages: getaddrinfo-1, getaddrinfo-4, getaddrinfo-44
		{"a name has all its addresses in the resolver's order", "both", "7471", nil, []AddrInfo{rcDst("[2001:db8::7]:7471"), rcDst("10.0.0.7:7471")}},
		// manpages: getaddrinfo-46
		{"RAI_DNS is the ordinary lookup", "v4only", "7471", &AddrInfo{Flags: RAIDNS}, []AddrInfo{rcDst("10.0.0.4:7471"), rcDst("10.0.1.4:7471")}},
		// manpages: getaddrinfo-28
		{"RAI_NOROUTE suppresses a route that is never looked up", "10.0.0.7", "7471", &AddrInfo{Flags: RAINoRoute}, []AddrInfo{rcDst("10.0.0.7:7471")}},
		{"IPv4-mapped node stays IPv6", "::ffff:10.0.0.7", "7471", nil, []AddrInfo{rcDst("[::ffff:10.0.0.7]:7471")}},
		{"IPv4-mapped node with AF_INET is IPv4", "::ffff:10.0.0.7", "7471", &AddrInfo{Family: FamilyIPv4}, []AddrInfo{rcDst("10.0.0.7:7471")}},
		{"zone by name", "fe80::1%" + anInterface(), "7471", nil, []AddrInfo{rcDst("[fe80::1%" + anInterface() + "]:7471")}},
		{"zone of a link-local group", "ff02::1%" + anInterface(), "7471", nil, []AddrInfo{rcDst("[ff02::1%" + anInterface() + "]:7471")}},
		{"zone by number", "fe80::1%99", "7471", nil, []AddrInfo{rcDst("[fe80::1%99]:7471")}},
		// manpages: getaddrinfo-1
		{"zone from the resolver", "zoned", "7471", nil, []AddrInfo{rcDst("[fe80::9%" + anInterface() + "]:7471")}},

		// Services.
		// manpages: getaddrinfo-2
		{"service name", "10.0.0.7", "http", nil, []AddrInfo{rcDst("10.0.0.7:80")}},
		{"service name known to both is TCP's", "10.0.0.7", "domain", nil, []AddrInfo{rcDst("10.0.0.7:53")}},
		{"service name known to UDP only chooses UD", "10.0.0.7", "ntp", nil, []AddrInfo{ai(0, FamilyIPv4, QPTypeUD, PortSpaceUDP, "", "10.0.0.7:123")}},
		{"service name by port space", "10.0.0.7", "domain", &AddrInfo{PortSpace: PortSpaceUDP}, []AddrInfo{ai(0, FamilyIPv4, QPTypeUD, PortSpaceUDP, "", "10.0.0.7:53")}},
		{"service with leading zeros is decimal", "10.0.0.7", "007471", nil, []AddrInfo{rcDst("10.0.0.7:7471")}},
		// manpages: getaddrinfo-2
		{"highest port", "10.0.0.7", "65535", nil, []AddrInfo{rcDst("10.0.0.7:65535")}},
		{"service name of the highest port", "10.0.0.7", "last", nil, []AddrInfo{rcDst("10.0.0.7:65535")}},

		// RAI_PASSIVE.
		// manpages: getaddrinfo-22, getaddrinfo-34
		{"passive node is the source", "10.0.0.5", "7471", &AddrInfo{Flags: RAIPassive}, []AddrInfo{rcSrc("10.0.0.5:7471")}},
		// manpages: getaddrinfo-35
		{"passive ignores hints' source", "10.0.0.5", "7471", &AddrInfo{Flags: RAIPassive, Src: MustAddr("10.9.9.9:1")}, []AddrInfo{rcSrc("10.0.0.5:7471")}},
		// manpages: getaddrinfo-22
		{"passive without node is the wildcard", "", "7471", &AddrInfo{Flags: RAIPassive}, []AddrInfo{rcSrc("0.0.0.0:7471"), rcSrc("[::]:7471")}},
		{"passive wildcard AF_INET6", "", "7471", &AddrInfo{Flags: RAIPassive, Family: FamilyIPv6}, []AddrInfo{rcSrc("[::]:7471")}},
		// manpages: getaddrinfo-30
		{"passive wildcard AF_INET", "", "7471", &AddrInfo{Flags: RAIPassive, Family: FamilyIPv4}, []AddrInfo{rcSrc("0.0.0.0:7471")}},
		{"hint flags are not echoed", "10.0.0.5", "7471", &AddrInfo{Flags: RAIPassive | RAINumericHost | RAINoRoute | RAIFamily | RAIDNS}, []AddrInfo{rcSrc("10.0.0.5:7471")}},

		// RAI_NUMERICHOST, ai_family.
		// manpages: getaddrinfo-26
		{"RAI_NUMERICHOST with a literal", "10.0.0.7", "7471", &AddrInfo{Flags: RAINumericHost}, []AddrInfo{rcDst("10.0.0.7:7471")}},
		// manpages: getaddrinfo-26
		{"RAI_NUMERICHOST without a node", "", "7471", &AddrInfo{Flags: RAINumericHost, Family: FamilyIPv4}, []AddrInfo{rcDst("127.0.0.1:7471")}},
		// manpages: getaddrinfo-29
		{"ai_family restricts without RAI_FAMILY", "both", "7471", &AddrInfo{Family: FamilyIPv4}, []AddrInfo{rcDst("10.0.0.7:7471")}},
		// manpages: getaddrinfo-29
		{"ai_family restricts with RAI_FAMILY", "both", "7471", &AddrInfo{Flags: RAIFamily, Family: FamilyIPv6}, []AddrInfo{rcDst("[2001:db8::7]:7471")}},
		{"RAI_FAMILY without a family is no restriction", "both", "7471", &AddrInfo{Flags: RAIFamily}, []AddrInfo{rcDst("[2001:db8::7]:7471"), rcDst("10.0.0.7:7471")}},

		// ai_qp_type and ai_port_space.
		// manpages: getaddrinfo-32
		{"TCP alone is RC", "10.0.0.7", "1", &AddrInfo{PortSpace: PortSpaceTCP}, []AddrInfo{rcDst("10.0.0.7:1")}},
		// manpages: getaddrinfo-32
		{"UDP alone is UD", "10.0.0.7", "1", &AddrInfo{PortSpace: PortSpaceUDP}, []AddrInfo{ai(0, FamilyIPv4, QPTypeUD, PortSpaceUDP, "", "10.0.0.7:1")}},
		// manpages: getaddrinfo-32
		{"IPOIB alone is UD", "10.0.0.7", "1", &AddrInfo{PortSpace: PortSpaceIPOIB}, []AddrInfo{ai(0, FamilyIPv4, QPTypeUD, PortSpaceIPOIB, "", "10.0.0.7:1")}},
		// manpages: getaddrinfo-32
		{"IB alone is RC", "10.0.0.7", "1", &AddrInfo{PortSpace: PortSpaceIB}, []AddrInfo{ai(0, FamilyIPv4, QPTypeRC, PortSpaceIB, "", "10.0.0.7:1")}},
		// manpages: getaddrinfo-32
		{"unknown port space is copied", "10.0.0.7", "1", &AddrInfo{PortSpace: 0x777}, []AddrInfo{ai(0, FamilyIPv4, QPTypeRC, 0x777, "", "10.0.0.7:1")}},
		// manpages: getaddrinfo-31
		{"RC alone is TCP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeRC}, []AddrInfo{rcDst("10.0.0.7:1")}},
		{"UC alone is TCP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeUC}, []AddrInfo{ai(0, FamilyIPv4, QPTypeUC, PortSpaceTCP, "", "10.0.0.7:1")}},
		// manpages: getaddrinfo-31
		{"UD alone is UDP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeUD}, []AddrInfo{ai(0, FamilyIPv4, QPTypeUD, PortSpaceUDP, "", "10.0.0.7:1")}},
		// manpages: getaddrinfo-31
		{"XRC_SEND alone is TCP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeXRCSend}, []AddrInfo{ai(0, FamilyIPv4, QPTypeXRCSend, PortSpaceTCP, "", "10.0.0.7:1")}},
		{"XRC_RECV alone is TCP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeXRCRecv}, []AddrInfo{ai(0, FamilyIPv4, QPTypeXRCRecv, PortSpaceTCP, "", "10.0.0.7:1")}},
		{"RAW_PACKET alone is TCP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeRawPacket}, []AddrInfo{ai(0, FamilyIPv4, QPTypeRawPacket, PortSpaceTCP, "", "10.0.0.7:1")}},
		{"UD and IB", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeUD, PortSpace: PortSpaceIB}, []AddrInfo{ai(0, FamilyIPv4, QPTypeUD, PortSpaceIB, "", "10.0.0.7:1")}},
		{"UD and IPOIB", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeUD, PortSpace: PortSpaceIPOIB}, []AddrInfo{ai(0, FamilyIPv4, QPTypeUD, PortSpaceIPOIB, "", "10.0.0.7:1")}},

		// AF_IB.
		// manpages: getaddrinfo-29
		{"GID", "fe80::2", "7471", ibHints, []AddrInfo{{Family: FamilyIB, QPType: QPTypeRC, PortSpace: PortSpaceTCP, Dst: gid("fe80::2", 0x01061d2f, allOnes)}}},
		{"GID without port", "fe80::2", "", ibHints, []AddrInfo{{Family: FamilyIB, QPType: QPTypeRC, PortSpace: PortSpaceTCP, Dst: gid("fe80::2", 0x01060000, portZero)}}},
		{"GID with zone", "fe80::2%7", "7471", ibHints, []AddrInfo{{
			Family: FamilyIB, QPType: QPTypeRC, PortSpace: PortSpaceTCP,
			Dst: Addr{IB: &SockaddrIB{PKey: 0xFFFF, GID: netip.MustParseAddr("fe80::2").As16(), SID: 0x01061d2f, SIDMask: allOnes, ScopeID: 7}},
		}}},
		{"GID of RoCE", "::ffff:10.0.0.7", "7471", ibHints, []AddrInfo{{Family: FamilyIB, QPType: QPTypeRC, PortSpace: PortSpaceTCP, Dst: gid("::ffff:10.0.0.7", 0x01061d2f, allOnes)}}},
		{
			"GID in the IB port space", "fe80::2", "7471",
			&AddrInfo{Flags: RAIFamily | RAINumericHost, Family: FamilyIB, PortSpace: PortSpaceIB, QPType: QPTypeUD},
			[]AddrInfo{{Family: FamilyIB, QPType: QPTypeUD, PortSpace: PortSpaceIB, Dst: gid("fe80::2", 0x013f1d2f, allOnes)}},
		},
		{
			// manpages: getaddrinfo-30
			"passive GID", "fe80::2", "7471", &AddrInfo{Flags: RAIPassive | RAIFamily | RAINumericHost, Family: FamilyIB},
			[]AddrInfo{{Flags: RAIPassive, Family: FamilyIB, QPType: QPTypeRC, PortSpace: PortSpaceTCP, Src: gid("fe80::2", 0x01061d2f, allOnes)}},
		},
		{
			"passive GID without node is the zero GID", "", "7471", &AddrInfo{Flags: RAIPassive | RAIFamily | RAINumericHost, Family: FamilyIB},
			[]AddrInfo{{Flags: RAIPassive, Family: FamilyIB, QPType: QPTypeRC, PortSpace: PortSpaceTCP, Src: gid("::", 0x01061d2f, allOnes)}},
		},
		// manpages: getaddrinfo-30
		{"AF_IB without RAI_NUMERICHOST is IPv6", "fe80::2", "7471", &AddrInfo{Flags: RAIFamily, Family: FamilyIB}, []AddrInfo{rcDst("[fe80::2]:7471")}},
		{"AF_IB without RAI_FAMILY is IPv6", "fe80::2", "7471", &AddrInfo{Flags: RAINumericHost, Family: FamilyIB}, []AddrInfo{rcDst("[fe80::2]:7471")}},
		{"AF_IB is no restriction for a name", "both", "7471", &AddrInfo{Family: FamilyIB}, []AddrInfo{rcDst("[2001:db8::7]:7471"), rcDst("10.0.0.7:7471")}},

		// Hints' addresses.
		// manpages: getaddrinfo-35
		{"active takes hints' source", "v4only", "7471", &AddrInfo{Src: local}, []AddrInfo{
			ai(0, FamilyIPv4, QPTypeRC, PortSpaceTCP, "10.0.0.5:0", "10.0.0.4:7471"), ai(0, FamilyIPv4, QPTypeRC, PortSpaceTCP, "10.0.0.5:0", "10.0.1.4:7471"),
		}},
		// manpages: getaddrinfo-36
		{"active ignores hints' destination", "10.0.0.7", "7471", &AddrInfo{Dst: MustAddr("10.9.9.9:9")}, []AddrInfo{rcDst("10.0.0.7:7471")}},
		// manpages: getaddrinfo-23, getaddrinfo-41
		{"route and connect data of hints are not results", "10.0.0.7", "7471", &AddrInfo{Route: []byte{1}, Connect: []byte{2}}, []AddrInfo{rcDst("10.0.0.7:7471")}},
		{
			// manpages: getaddrinfo-25
			"hints alone are copied", "", "", &AddrInfo{Flags: RAINumericHost | RAINoRoute, Family: FamilyIPv4, PortSpace: PortSpaceUDP, Src: local, Dst: MustAddr("10.0.0.7:1"), Route: []byte{1}},
			[]AddrInfo{ai(RAINumericHost|RAINoRoute, FamilyIPv4, QPTypeAny, PortSpaceUDP, "10.0.0.5:0", "10.0.0.7:1")},
		},
		{
			// manpages: getaddrinfo-34
			"passive hints alone lose the destination", "", "", &AddrInfo{Flags: RAIPassive, Src: local, Dst: MustAddr("10.0.0.7:1")},
			[]AddrInfo{ai(RAIPassive, FamilyAny, QPTypeAny, 0, "10.0.0.5:0", "")},
		},
		// manpages: getaddrinfo-20
		{"zero hints alone", "", "", &AddrInfo{}, []AddrInfo{{}}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got, err := lookupAddrInfo(t.Context(), newFakeResolver(), r.node, r.service, r.hints)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(r.want, got, cmpAddrInfo); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestGetAddrInfoErrors has one row for each way to fail: the code, the errno where librdmacm sets
// one, and the whole message.
// manpages: getaddrinfo-7
func TestGetAddrInfoErrors(t *testing.T) {
	udTCP := &AddrInfo{QPType: QPTypeUD, PortSpace: PortSpaceTCP}
	numeric := &AddrInfo{Flags: RAINumericHost}
	rows := []struct {
		name          string
		node, service string
		hints         *AddrInfo
		code          EAI
		is            error // also in the chain; nil: nothing more
		text          string
	}{
		// manpages: getaddrinfo-15, getaddrinfo-20
		{"nothing given", "", "", nil, EAINoName, unix.EINVAL, `getaddrinfo: node not known: invalid argument: give a node, a service or hints [EAI_NONAME, EINVAL]`},
		// manpages: getaddrinfo-10
		{"unknown flag", "10.0.0.7", "1", &AddrInfo{Flags: 0x140}, EAIBadFlags, nil, `getaddrinfo node "10.0.0.7" service "1": unknown flag in the hints: 0x140: use the RAI constants [EAI_BADFLAGS]`},
		{"unknown flag with hints alone", "", "", &AddrInfo{Flags: 0x40}, EAIBadFlags, nil, `getaddrinfo: unknown flag in the hints: 0x40: use the RAI constants [EAI_BADFLAGS]`},
		// manpages: getaddrinfo-12
		{"unknown family", "10.0.0.7", "1", &AddrInfo{Family: 16}, EAIFamily, nil, `getaddrinfo node "10.0.0.7" service "1": address family not supported: family 16: use FamilyIPv4, FamilyIPv6, FamilyIB or none [EAI_FAMILY]`},
		// manpages: getaddrinfo-26
		{"name with RAI_NUMERICHOST", "both", "1", numeric, EAINoName, nil, `getaddrinfo node "both" service "1": node not known: it is no literal address: give an IP address, or leave RAINumericHost out [EAI_NONAME]`},
		// manpages: getaddrinfo-15
		{"unknown name", "nosuch", "1", nil, EAINoName, nil, `getaddrinfo node "nosuch" service "1": node not known: lookup nosuch: no such host: check the spelling, or give an IP address [EAI_NONAME]`},
		// manpages: getaddrinfo-14
		{"name without addresses", "empty", "1", nil, EAINoData, nil, `getaddrinfo node "empty" service "1": the node has no address: give the name an address, or give an IP address [EAI_NODATA]`},
		// manpages: getaddrinfo-9
		{"name server fails for the moment", "servbad", "1", nil, EAIAgain, nil, `getaddrinfo node "servbad" service "1": no answer from the name server for now: lookup servbad: server misbehaving: try again later [EAI_AGAIN]`},
		// manpages: getaddrinfo-9
		{"name server does not answer", "slow", "1", nil, EAIAgain, nil, `getaddrinfo node "slow" service "1": no answer from the name server for now: lookup slow: i/o timeout: try again later [EAI_AGAIN]`},
		// manpages: getaddrinfo-11
		{"name server fails for good", "broken", "1", nil, EAIFail, nil, `getaddrinfo node "broken" service "1": the name server failed: lookup broken: cannot unmarshal DNS message: check the name server, or give an IP address [EAI_FAIL]`},
		// manpages: getaddrinfo-18
		{"out of file descriptors", "nofiles", "1", nil, EAISystem, unix.EMFILE, `getaddrinfo node "nofiles" service "1": system error: dial udp: too many open files: see the errno [EAI_SYSTEM, EMFILE]`},
		// manpages: getaddrinfo-9
		{"deadline", "late", "1", nil, EAIAgain, unix.ETIMEDOUT, `getaddrinfo node "late" service "1": no answer from the name server for now: connection timed out: lookup late: context deadline exceeded: try again later or with a longer deadline [EAI_AGAIN, ETIMEDOUT]`},
		// manpages: getaddrinfo-18
		{"cancelled", "stopped", "1", nil, EAISystem, unix.ECANCELED, `getaddrinfo node "stopped" service "1": system error: operation canceled: lookup stopped: context canceled: the caller cancelled it [EAI_SYSTEM, ECANCELED]`},

		// manpages: getaddrinfo-8
		{"IPv4 literal with AF_INET6", "10.0.0.7", "1", &AddrInfo{Family: FamilyIPv6}, EAIAddrFamily, nil, `getaddrinfo node "10.0.0.7" service "1": the node has no address of this family: it has 10.0.0.7: leave the family out of the hints [EAI_ADDRFAMILY]`},
		// manpages: getaddrinfo-8
		{"IPv6 literal with AF_INET", "::1", "1", &AddrInfo{Family: FamilyIPv4}, EAIAddrFamily, nil, `getaddrinfo node "::1" service "1": the node has no address of this family: it has ::1: leave the family out of the hints [EAI_ADDRFAMILY]`},
		// manpages: getaddrinfo-8
		{"name without addresses of the family", "v4only", "1", &AddrInfo{Family: FamilyIPv6}, EAIAddrFamily, nil, `getaddrinfo node "v4only" service "1": the node has no address of this family: it has 10.0.0.4: leave the family out of the hints [EAI_ADDRFAMILY]`},
		{"IPv4 literal for a GID", "10.0.0.7", "1", &AddrInfo{Flags: RAIFamily | RAINumericHost, Family: FamilyIB}, EAIAddrFamily, nil, `getaddrinfo node "10.0.0.7" service "1": the node has no address of this family: it has 10.0.0.7: write the GID as an IPv6 address [EAI_ADDRFAMILY]`},

		// manpages: getaddrinfo-16
		{"unknown service", "10.0.0.7", "nosuch", nil, EAIService, nil, `getaddrinfo node "10.0.0.7" service "nosuch": service not known: lookup tcp/nosuch: unknown port: give a port number, or a name that /etc/services has for tcp [EAI_SERVICE]`},
		// manpages: getaddrinfo-16
		{"service of the other port space", "10.0.0.7", "http", &AddrInfo{QPType: QPTypeUD}, EAIService, nil, `getaddrinfo node "10.0.0.7" service "http": service not known: lookup udp/http: unknown port: give a port number, or a name that /etc/services has for udp [EAI_SERVICE]`},
		// manpages: getaddrinfo-16
		{"service out of range", "10.0.0.7", "65536", nil, EAIService, nil, `getaddrinfo node "10.0.0.7" service "65536": service not known: port 65536 is out of range: ports are 0 to 65535 [EAI_SERVICE]`},
		{"service of a broken database", "10.0.0.7", "wild", nil, EAIService, nil, `getaddrinfo node "10.0.0.7" service "wild": service not known: port 70000 is out of range: give a port number, or a name that /etc/services has for tcp [EAI_SERVICE]`},
		{"negative service", "10.0.0.7", "-1", nil, EAIService, nil, `getaddrinfo node "10.0.0.7" service "-1": service not known: give a port number, or a name that /etc/services has for tcp [EAI_SERVICE]`},
		// manpages: getaddrinfo-2
		{"signed service", "10.0.0.7", "+80", nil, EAIService, nil, `getaddrinfo node "10.0.0.7" service "+80": service not known: give a port number, or a name that /etc/services has for tcp [EAI_SERVICE]`},
		// manpages: getaddrinfo-2
		{"service with a blank", "10.0.0.7", " 80", nil, EAIService, nil, `getaddrinfo node "10.0.0.7" service " 80": service not known: give a port number, or a name that /etc/services has for tcp [EAI_SERVICE]`},
		{"service is judged before node", "nosuch", "nosuch", numeric, EAIService, nil, `getaddrinfo node "nosuch" service "nosuch": service not known: lookup tcp/nosuch: unknown port: give a port number, or a name that /etc/services has for tcp [EAI_SERVICE]`},

		// manpages: getaddrinfo-17
		{"UD and TCP", "10.0.0.7", "1", udTCP, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type UD, port space TCP: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},
		// manpages: getaddrinfo-17
		{"RC and UDP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeRC, PortSpace: PortSpaceUDP}, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type RC, port space UDP: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},
		// manpages: getaddrinfo-17
		{"RC and IPOIB", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeRC, PortSpace: PortSpaceIPOIB}, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type RC, port space IPOIB: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},
		{"UC and UDP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeUC, PortSpace: PortSpaceUDP}, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type UC, port space UDP: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},
		{"XRC_SEND and UDP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeXRCSend, PortSpace: PortSpaceUDP}, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type XRC_SEND, port space UDP: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},
		{"XRC_SEND and IPOIB", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeXRCSend, PortSpace: PortSpaceIPOIB}, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type XRC_SEND, port space IPOIB: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},
		{"XRC_RECV and UDP", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeXRCRecv, PortSpace: PortSpaceUDP}, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type XRC_RECV, port space UDP: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},
		{"XRC_RECV and IPOIB", "10.0.0.7", "1", &AddrInfo{QPType: QPTypeXRCRecv, PortSpace: PortSpaceIPOIB}, EAISockType, nil, `getaddrinfo node "10.0.0.7" service "1": queue pair type and port space contradict each other: type XRC_RECV, port space IPOIB: RC goes with TCP, UD with UDP or IPOIB; leave one of the two out [EAI_SOCKTYPE]`},

		// manpages: getaddrinfo-45
		{"RAI_SA with node", "10.0.0.7", "1", &AddrInfo{Flags: RAISA}, EAISystem, unix.EOPNOTSUPP, `getaddrinfo node "10.0.0.7" service "1": system error: operation not supported: RAISA takes a service and neither a node nor RAIDNS [EAI_SYSTEM, ENOTSUP]`},
		// manpages: getaddrinfo-46
		{"RAI_SA with RAI_DNS", "", "svc", &AddrInfo{Flags: RAISA | RAIDNS}, EAISystem, unix.EOPNOTSUPP, `getaddrinfo service "svc": system error: operation not supported: RAISA takes a service and neither a node nor RAIDNS [EAI_SYSTEM, ENOTSUP]`},
		// manpages: getaddrinfo-45
		{"RAI_SA finds no service record", "", "svc", &AddrInfo{Flags: RAISA}, EAISystem, unix.ENOENT, `getaddrinfo service "svc": system error: no such file or directory: no InfiniBand port to ask for service records: look up without RAISA [EAI_SYSTEM, ENOENT]`},

		{"zone that does not exist", "fe80::1%nosuch0", "1", nil, EAINoName, nil, `getaddrinfo node "fe80::1%nosuch0" service "1": node not known: no interface "nosuch0" for fe80::1: name an interface that exists, after a link-local address only [EAI_NONAME]`},
		{"zone by name on a global address", "2001:db8::1%" + anInterface(), "1", nil, EAINoName, nil, fmt.Sprintf(`getaddrinfo node "2001:db8::1%%%[1]s" service "1": node not known: no interface %[1]q for 2001:db8::1: name an interface that exists, after a link-local address only [EAI_NONAME]`, anInterface())},
		{"node with a port", "server:7471", "1", nil, EAINoName, nil, `getaddrinfo node "server:7471" service "1": node not known: it is neither a name nor an address: check the IPv6 address; a port is given as the service [EAI_NONAME]`},
		{"node in brackets", "[::1]", "1", nil, EAINoName, nil, `getaddrinfo node "[::1]" service "1": node not known: it is neither a name nor an address: give the address without brackets, and the port as the service [EAI_NONAME]`},
		{"IPv4 address with too much", "10.0.0.256", "1", nil, EAINoName, nil, `getaddrinfo node "10.0.0.256" service "1": node not known: it is neither a name nor an address: write an IPv4 address as four decimal numbers up to 255, without leading zeros [EAI_NONAME]`},
		{"IPv4 address with two parts", "127.1", "1", nil, EAINoName, nil, `getaddrinfo node "127.1" service "1": node not known: it is neither a name nor an address: write an IPv4 address as four decimal numbers up to 255, without leading zeros [EAI_NONAME]`},
		{"IPv4 address in hexadecimal", "0x7f000001", "1", nil, EAINoName, nil, `getaddrinfo node "0x7f000001" service "1": node not known: it is neither a name nor an address: write an IPv4 address as four decimal numbers up to 255, without leading zeros [EAI_NONAME]`},
		{"IPv4 address that ends in hexadecimal", "10.0.0X7", "1", nil, EAINoName, nil, `getaddrinfo node "10.0.0X7" service "1": node not known: it is neither a name nor an address: write an IPv4 address as four decimal numbers up to 255, without leading zeros [EAI_NONAME]`},
		{"node with a blank", "my server", "1", nil, EAINoName, nil, `getaddrinfo node "my server" service "1": node not known: it is neither a name nor an address: remove what belongs to no name: blanks, slashes, percent signs [EAI_NONAME]`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got, err := lookupAddrInfo(t.Context(), newFakeResolver(), r.node, r.service, r.hints)
			if got != nil {
				t.Errorf("result beside the error: %v", got)
			}
			var gai *GAIError
			if !errors.As(err, &gai) {
				t.Fatalf("error is %T, want *GAIError", err)
			}
			if gai.Code != r.code || !errors.Is(err, r.code) || gai.Node != r.node || gai.Service != r.service {
				t.Errorf("code %v node %q service %q, want %v", gai.Code.Name(), gai.Node, gai.Service, r.code.Name())
			}
			if r.is != nil && !errors.Is(err, r.is) {
				t.Errorf("errors.Is(err, %v) is false", r.is)
			}
			var errno unix.Errno
			if r.is == nil && errors.As(err, &errno) {
				t.Errorf("unexpected errno %v", errno)
			}
			if gai.Error() != r.text {
				t.Errorf("message:\n got %s\nwant %s", gai.Error(), r.text)
			}
		})
	}
}

// TestGetAddrInfoCodes compares the codes with glibc's numbers, which C programs compare with.
// manpages: getaddrinfo-7, getaddrinfo-19
func TestGetAddrInfoCodes(t *testing.T) {
	codes := map[EAI]string{
		-1: "EAI_BADFLAGS", -2: "EAI_NONAME", -3: "EAI_AGAIN", -4: "EAI_FAIL", -5: "EAI_NODATA", -6: "EAI_FAMILY",
		-7: "EAI_SOCKTYPE", -8: "EAI_SERVICE", -9: "EAI_ADDRFAMILY", -10: "EAI_MEMORY", -11: "EAI_SYSTEM",
	}
	for c, name := range codes {
		if c.Name() != name || c.Error() == "" || strings.HasPrefix(c.Error(), "EAI") {
			t.Errorf("%d is %s %q, want %s in words", c, c.Name(), c.Error(), name)
		}
	}
	if c := EAI(-99); c.Name() != "EAI(-99)" || c.Error() != "EAI(-99)" {
		t.Errorf("unknown code: %s, %s", c.Name(), c.Error())
	}
}

// TestGetAddrInfoAsksNobody shows that literals, RAI_NUMERICHOST and mistyped addresses cause no
// lookup, so they cannot wait.
// manpages: getaddrinfo-27
func TestGetAddrInfoAsksNobody(t *testing.T) {
	res := newFakeResolver()
	for _, node := range []string{"", "10.0.0.7", "::1", "fe80::1%1", "10.0.0.256", "host:7471", "[::1]", "1.2.3", "0x7f000001", "0x"} {
		_, _ = lookupAddrInfo(t.Context(), res, node, "7471", nil)
	}
	_, _ = lookupAddrInfo(t.Context(), res, "both", "7471", &AddrInfo{Flags: RAINumericHost})
	_, _ = lookupAddrInfo(t.Context(), res, "both", "nosuch", nil)
	_, _ = lookupAddrInfo(t.Context(), res, "both", "1", &AddrInfo{QPType: QPTypeUD, PortSpace: PortSpaceTCP})
	if len(res.asked) != 0 {
		t.Errorf("the resolver was asked for %q", res.asked)
	}
	if _, err := lookupAddrInfo(t.Context(), res, "both", "7471", nil); err != nil || len(res.asked) != 1 {
		t.Errorf("a name: err %v, asked %q, want one lookup", err, res.asked)
	}
}

// TestGetAddrInfoOwnership shows that results share no memory with the hints or with each other.
// manpages: getaddrinfo-25
func TestGetAddrInfoOwnership(t *testing.T) {
	hints := &AddrInfo{Src: gid("fe80::5", 1, 2), Dst: gid("fe80::6", 1, 2)}
	alone, err := lookupAddrInfo(t.Context(), newFakeResolver(), "", "", hints)
	if err != nil {
		t.Fatal(err)
	}
	both, err := lookupAddrInfo(t.Context(), newFakeResolver(), "both", "1", hints)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[*SockaddrIB]bool{hints.Src.IB: true, hints.Dst.IB: true}
	for _, p := range []*SockaddrIB{alone[0].Src.IB, alone[0].Dst.IB, both[0].Src.IB, both[1].Src.IB} {
		if p == nil || seen[p] {
			t.Errorf("address %p is missing or shared", p)
		}
		seen[p] = true
	}
}

// TestGetAddrInfoDefaultResolver uses the real resolver, for what needs no network.
// manpages: getaddrinfo-2, getaddrinfo-6, getaddrinfo-26
func TestGetAddrInfoDefaultResolver(t *testing.T) {
	got, err := LookupAddrInfo(t.Context(), "127.0.0.1", "http", &AddrInfo{PortSpace: PortSpaceTCP})
	if err != nil || len(got) != 1 || got[0].Dst != MustAddr("127.0.0.1:80") {
		t.Errorf("127.0.0.1 http: %v, %v", got, err)
	}
	got, err = LookupAddrInfo(t.Context(), "127.0.0.1", "HTTP", nil)
	if err != nil || len(got) != 1 || got[0].Dst != MustAddr("127.0.0.1:80") {
		t.Errorf("the case of a service's name says nothing: %v, %v", got, err)
	}
	// under cgo the C library looks them up, which accepts some of them
	for _, service := range []string{"+80", " 80", "\t80", "-1"} {
		if got, err := LookupAddrInfo(t.Context(), "127.0.0.1", service, nil); !errors.Is(err, EAIService) {
			t.Errorf("service %q: %v, %v, want EAI_SERVICE", service, got, err)
		}
	}
	got, err = LookupAddrInfo(t.Context(), "localhost", "7471", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range got {
		if !a.Dst.Addr().IsLoopback() || a.Dst.Port() != 7471 || a.Dst.Addr().Is4In6() {
			t.Errorf("localhost is %v", a.Dst)
		}
	}
	if _, err := LookupAddrInfo(t.Context(), "127.0.0.1", "no-such-service", nil); !errors.Is(err, EAIService) {
		t.Errorf("unknown service: %v", err)
	}
	if _, err := LookupAddrInfo(t.Context(), "localhost", "7471", &AddrInfo{Flags: RAINumericHost}); !errors.Is(err, EAINoName) {
		t.Errorf("a name with RAI_NUMERICHOST: %v", err)
	}
}

// TestAddrInfoPrivateData shows that ai_connect goes before the user's private data.
// manpages: getaddrinfo-43
func TestAddrInfoPrivateData(t *testing.T) {
	user := []byte("user")
	ai := &AddrInfo{Connect: append(make([]byte, 0, 16), "head"...)}
	got := ai.PrivateData(user)
	if !bytes.Equal(got, []byte("headuser")) {
		t.Errorf("got %q", got)
	}
	if got[0] = 'H'; ai.Connect[0] != 'h' || !bytes.Equal(ai.Connect[:8], []byte("head\x00\x00\x00\x00")) {
		t.Errorf("ai_connect was written to: %q", ai.Connect[:8])
	}
	if got := (&AddrInfo{Connect: []byte("1")}).PrivateData(user); !bytes.Equal(got, []byte("1user")) {
		t.Errorf("with one byte of ai_connect: %q", got)
	}
	if got := (&AddrInfo{}).PrivateData(user); !bytes.Equal(got, user) {
		t.Errorf("without ai_connect: %q", got)
	}
	if got := ai.PrivateData(nil); !bytes.Equal(got, []byte("head")) {
		t.Errorf("without private data: %q", got)
	}
}
