package fairshare

import (
	"fmt"
	"net/netip"
	"testing"
)

// fill gives an address as many places as it may have.
func fill(p *Places, a string, most int) (n int) {
	for addr := netip.MustParseAddr(a); p.May(addr, most); n++ {
		p.Take(addr)
	}
	return n
}

// One address gets half of what is not kept for others, and others get half of what is left.
func TestMay(t *testing.T) {
	var p Places
	for i, want := range []int{16, 8, 4, 2, 1, 1, 0} {
		if n := fill(&p, fmt.Sprint("10.0.0.", i), 32); n != want {
			t.Errorf("address %d has %d places, want %d", i, n, want)
		}
	}
	if fill(&p, "10.0.1.1", 32) != 0 || fill(&p, "10.0.0.0", 32) != 0 {
		t.Error("more than all")
	}
	for range 16 {
		p.Free(netip.MustParseAddr("10.0.0.0"))
	}
	if n := fill(&p, "10.0.1.1", 32); n != 8 {
		t.Errorf("when places are free an address has %d", n)
	}
}

// However few the places are, one is for an address that has none, if there are two.
func TestFewPlaces(t *testing.T) {
	for most := 2; most <= 16; most++ {
		var p Places
		if n := fill(&p, "10.0.0.1", most); n == 0 || n == most {
			t.Errorf("the first address has %d of %d places", n, most)
		}
		if fill(&p, "10.0.0.2", most) == 0 {
			t.Errorf("the second address has none of %d places", most)
		}
	}
	var p Places
	if fill(&p, "10.0.0.1", 1) != 1 {
		t.Error("the only place is not given")
	}
}

// Addresses of one network, and one address however it is written, share their places.
func TestNetworks(t *testing.T) {
	for _, same := range [][2]string{{"2001:db8::1", "2001:db8::2:3:4:5"}, {"::ffff:10.0.0.1", "10.0.0.1"}} {
		var p Places
		fill(&p, same[0], 32)
		if n := fill(&p, same[1], 32); n != 0 {
			t.Errorf("%s has %d places beside %s", same[1], n, same[0])
		}
	}
	var p Places
	fill(&p, "2001:db8::1", 32)
	if fill(&p, "2001:db8:0:1::1", 32) == 0 {
		t.Error("two networks share their places")
	}
	p = Places{}
	fill(&p, "fe80::1", 32)
	if fill(&p, "fe80::2", 32) == 0 {
		t.Error("two hosts of a link share their places")
	}
}

// Who has no place any more is forgotten.
func TestForgets(t *testing.T) {
	var p Places
	for i := range 100 {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		p.Take(a)
		p.Free(a)
	}
	if len(p.of) != 0 || p.all != 0 {
		t.Errorf("%+v", p)
	}
}
