// Package fairshare shares places among the addresses that want them, so that one of these cannot
// have them all. One address may have as many places as are left for all others. A sixteenth is for
// addresses that have none. An address is an IPv4 address, or an IPv6 network of 64 bits.
package fairshare

import "net/netip"

// Places counts places by the addresses that have them. The zero value has none taken. The caller
// locks.
type Places struct {
	all int
	of  map[netip.Addr]int
}

const kept = 16 // one part of so many is for addresses that have none

// Network is what an address counts as.
func Network(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		n, _ := a.Prefix(64)
		return n.Addr()
	}
	return a
}

// May reports whether an address may have one more, with most for all.
func (p *Places) May(a netip.Addr, most int) bool {
	has, left := p.of[Network(a)], most-p.all
	if has > 0 {
		left -= most / kept
	}
	return left > 0 && has <= left
}

// Take gives an address one more.
func (p *Places) Take(a netip.Addr) { p.add(Network(a), 1) }

// Free takes one back.
func (p *Places) Free(a netip.Addr) { p.add(Network(a), -1) }

func (p *Places) add(a netip.Addr, n int) {
	if p.of == nil {
		p.of = make(map[netip.Addr]int)
	}
	p.all += n
	if p.of[a] += n; p.of[a] == 0 {
		delete(p.of, a)
	}
}
