// Package fairshare shares places among the addresses, or other keys, that want them, so that one
// of these cannot have them all. One may have as many places as are left for all others. A
// sixteenth, and at least one place, is for those that have none. An address is an IPv4 address,
// or an IPv6 network of 64 bits, because one host may have all addresses of that. On a link
// (fe80::/10), where a network has many hosts, each IPv6 address counts by itself.
package fairshare

import "net/netip"

// Shares counts places by the keys that have them. The zero Shares has none taken. The caller
// locks.
type Shares[K comparable] struct {
	all int
	of  map[K]int
}

// Places is Shares by addresses.
type Places struct{ Shares[netip.Addr] }

const kept = 16 // one part of so many is for addresses that have none

// Network is what an address counts as.
func Network(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() && !a.IsLinkLocalUnicast() {
		n, _ := a.Prefix(64)
		return n.Addr()
	}
	return a
}

// May reports whether a key may have one more, with most for all.
func (s *Shares[K]) May(k K, most int) bool { return s.may(k, most, max(most/kept, 1)) }

// MayLocal is May for keys that are no peers, such as a program's listeners. Of fewer than 16
// places none is for those that have none.
func (s *Shares[K]) MayLocal(k K, most int) bool { return s.may(k, most, most/kept) }

func (s *Shares[K]) may(k K, most, kept int) bool {
	has, left := s.of[k], most-s.all
	if has > 0 {
		left -= kept
	}
	return left > 0 && has <= left
}

// Take gives a key one more.
func (s *Shares[K]) Take(k K) { s.add(k, 1) }

// Free takes one back.
func (s *Shares[K]) Free(k K) { s.add(k, -1) }

// Has is how many a key has.
func (s *Shares[K]) Has(k K) int { return s.of[k] }

func (s *Shares[K]) add(k K, n int) {
	if s.of == nil {
		s.of = make(map[K]int)
	}
	s.all += n
	if s.of[k] += n; s.of[k] == 0 {
		delete(s.of, k)
	}
}

// May reports whether an address may have one more, with most for all.
func (p *Places) May(a netip.Addr, most int) bool { return p.Shares.May(Network(a), most) }

// Take gives an address one more.
func (p *Places) Take(a netip.Addr) { p.Shares.Take(Network(a)) }

// Free takes one back.
func (p *Places) Free(a netip.Addr) { p.Shares.Free(Network(a)) }
