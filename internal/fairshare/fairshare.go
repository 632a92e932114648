// Package fairshare shares places, bytes, turns and rates among keys, such as the addresses of
// peers, so that one of them cannot have them all:
//
//   - Floor: a key that has none may have one of those that are left. A sixteenth, and at least one
//     place, is kept for such keys.
//   - Share: a key that has some may have more while it has no more than what is left for all
//     others. So one greedy key gets half of what is not kept, and two get a third each.
//   - Bound: keys together never have more than a total.
//   - Answer at the bound: Shares and Rates refuse, and in a Queue values wait until it is the turn
//     of their key.
//
// Peers count by cmid.Addr.Source.
package fairshare

// Shares counts places, or an amount such as bytes, by the keys that have them. A key that has none
// occupies no memory. The zero Shares has none taken. The caller locks.
type Shares[K comparable] struct {
	total int
	of    map[K]int
}

// Kept returns how much of a total is kept for keys that have none.
func Kept(total int) int { return max(total/16, 1) }

// Fair reports whether a key that has so much may have n more. left is what is left for all keys,
// kept how much of that is for keys that have none. With a patience of 1 the key may have more
// while it has no more than what is left, else as many times that.
func Fair(has, n, left, kept, patience int) bool {
	if has > 0 {
		left -= kept
	}
	return n <= left && has <= patience*left
}

// May reports whether a key may have one more place, with most for all.
func (s *Shares[K]) May(k K, most int) bool {
	return Fair(s.of[k], 1, most-s.total, Kept(most), 1)
}

// MayLocal is May for keys that are no peers, such as a program's listeners. Of fewer than 16
// places none is for those that have none.
func (s *Shares[K]) MayLocal(k K, most int) bool {
	return Fair(s.of[k], 1, most-s.total, most/16, 1)
}

// Take gives a key one more place.
func (s *Shares[K]) Take(k K) { s.Add(k, 1) }

// Free takes one back.
func (s *Shares[K]) Free(k K) { s.Add(k, -1) }

// Add gives a key n more, or takes -n back.
func (s *Shares[K]) Add(k K, n int) {
	if s.of == nil {
		s.of = make(map[K]int)
	}
	s.total += n
	if s.of[k] += n; s.of[k] == 0 {
		delete(s.of, k)
	}
}

// Set replaces the amount of one of a key's owners, which had so much, with wants, or with as much
// of it as leaves the others as much as the key has, with most for all. It returns the owner's new
// amount. It never takes from an owner that wants to keep its amount.
func (s *Shares[K]) Set(k K, had, wants, most int) (has int) {
	others := s.of[k] - had
	has = max(min(wants, had), min(wants, (most-s.total+had-others)/2), 0)
	s.Add(k, has-had)
	return has
}

// Has returns how much a key has.
func (s *Shares[K]) Has(k K) int { return s.of[k] }

// Total returns how much all keys have.
func (s *Shares[K]) Total() int { return s.total }
