package kernel

import (
	"net/netip"
	"strings"
	"testing"
)

func TestOrder(t *testing.T) {
	a := ID{"b", 1, 2, 3, "RC", "CONNECT", "TCP", 7, 7, "x", Addr{AddrPort: netip.MustParseAddrPort("9.0.0.1:1")}, Addr{AddrPort: netip.MustParseAddrPort("10.0.0.1:9")}}
	b := ID{"c", 2, 3, 4, "UD", "LISTEN", "UDP", 8, 7, "y", Addr{AddrPort: netip.MustParseAddrPort("10.0.0.1:1")}, Addr{AddrPort: netip.MustParseAddrPort("10.0.0.1:10")}}
	for field := range strings.SplitSeq(Fields, ", ") {
		for _, descending := range []bool{false, true} {
			ids := []ID{b, a}
			if descending {
				ids = []ID{a, b}
			}
			if err := Order(ids, field, descending); err != nil || (ids[0] == a) == descending {
				t.Errorf("by %s, descending %v: %v, %v", field, descending, ids, err)
			}
		}
	}
	if len(orders) != len(strings.Split(Fields, ", ")) {
		t.Error("Fields has not all of them")
	}
	if Order(nil, "size", false) == nil {
		t.Error("there is no field size")
	}
}
