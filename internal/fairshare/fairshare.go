// Package fairshare divides places, bytes, turns and rates among keys, such as the addresses of
// peers, so that no key takes all:
//
//   - Floor: a key without a place gets a free one. A sixteenth of all places, and at least one, is
//     reserved for such keys.
//   - Share: a key with places gets more as long as it has at most as many as are left for all
//     others. So one greedy key gets half of the unreserved places, and two get a third each.
//   - Bound: all keys together never exceed a total.
//   - At the bound Shares and Rates refuse, and in a Queue values wait for the turn of their key.
//
// Peers are counted by cmid.Addr.Source.
package fairshare

// Shares counts the places, or an amount such as bytes, of each key. A key without any occupies no
// memory. The zero Shares is empty. The caller locks.
type Shares[K comparable] struct {
	total int
	of    map[K]int
}

// Kept returns how much of a total is reserved for keys without any.
func Kept(total int) int { return max(total/16, 1) }

// Fair reports whether a key that has the amount has may take n more. left is the amount left for
// all keys, of which kept is reserved for keys without any. The key may take more as long as it has
// at most patience times the unreserved rest.
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
// places none is reserved.
func (s *Shares[K]) MayLocal(k K, most int) bool {
	return Fair(s.of[k], 1, most-s.total, most/16, 1)
}

// Take gives a key one more place.
func (s *Shares[K]) Take(k K) { s.Add(k, 1) }

// Free releases a place of a key.
func (s *Shares[K]) Free(k K) { s.Add(k, -1) }

// Add gives a key n more, or releases -n.
func (s *Shares[K]) Add(k K, n int) {
	if s.of == nil {
		s.of = make(map[K]int)
	}
	s.total += n
	if s.of[k] += n; s.of[k] == 0 {
		delete(s.of, k)
	}
}

// Set changes the amount of one of a key's owners from had to wants, or to as much of it as leaves
// all other keys the amount that the key then has, of most for all. It returns the owner's new
// amount. It never takes from an owner that wants to keep its amount.
func (s *Shares[K]) Set(k K, had, wants, most int) (has int) {
	others := s.of[k] - had
	has = max(min(wants, had), min(wants, (most-s.total+had-others)/2), 0)
	s.Add(k, has-had)
	return has
}

// Has returns the amount of a key.
func (s *Shares[K]) Has(k K) int { return s.of[k] }

// Total returns the amount of all keys.
func (s *Shares[K]) Total() int { return s.total }
