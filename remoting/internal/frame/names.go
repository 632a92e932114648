package frame

import (
	"hash/maphash"
	"unicode/utf8"
)

// Names remembers names that were read lately, so that those that come again and again are not
// copied again and again. It is bounded: a name takes the place of another one. The zero value can
// be used.
type Names struct {
	seed   maphash.Seed
	seeded bool
	sets   [128][4]string // the set is chosen by the name; in it, the latest comes first
}

// rememberable is how long a name may be to be remembered: a hostile node can make its link
// remember at most 512 of them.
const rememberable = 128

// internText returns b as a string. Not ok: it is not UTF-8. n may be nil.
func (n *Names) internText(b []byte) (s string, ok bool) {
	if len(b) == 0 {
		return "", true
	}
	if n == nil || len(b) > rememberable {
		if !utf8.Valid(b) {
			return "", false
		}
		return string(b), true
	}
	if !n.seeded {
		n.seed, n.seeded = maphash.MakeSeed(), true
	}
	set := &n.sets[maphash.Bytes(n.seed, b)%uint64(len(n.sets))]
	for i := range set {
		if set[i] == string(b) {
			s = set[i] // it was looked at when it came first
			copy(set[1:i+1], set[:i])
			set[0] = s
			return s, true
		}
	}
	if !utf8.Valid(b) {
		return "", false
	}
	s = string(b)
	copy(set[1:], set[:])
	set[0] = s
	return s, true
}
