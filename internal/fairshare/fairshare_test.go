package fairshare

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fill gives a key as many places as it may have.
func fill(s *Shares[int], k, most int) (n int) {
	for ; s.May(k, most); n++ {
		s.Take(k)
	}
	return n
}

// One key gets half of the unreserved places, and others get half of the rest.
func TestMay(t *testing.T) {
	var s Shares[int]
	for k, want := range []int{16, 8, 4, 2, 1, 1, 0} {
		if n := fill(&s, k, 32); n != want {
			t.Errorf("key %d has %d places, want %d", k, n, want)
		}
	}
	if fill(&s, 7, 32) != 0 || fill(&s, 0, 32) != 0 {
		t.Error("more than all")
	}
	for range 16 {
		s.Free(0)
	}
	if n := fill(&s, 7, 32); n != 8 {
		t.Errorf("when places are free a key has %d", n)
	}
}

// However few the places are, one is for a key that has none, if there are two. Keys that are no
// peers may have all of them.
func TestFewPlaces(t *testing.T) {
	for most := 2; most <= 16; most++ {
		var s, local Shares[int]
		if n := fill(&s, 1, most); n == 0 || n == most {
			t.Errorf("the first key has %d of %d places", n, most)
		}
		if fill(&s, 2, most) == 0 {
			t.Errorf("the second key has none of %d places", most)
		}
		for local.MayLocal(1, most) {
			local.Take(1)
		}
		if n := local.Total(); n < fill(new(Shares[int]), 1, most) {
			t.Errorf("a local key has %d of %d places", n, most)
		}
	}
	var s Shares[int]
	if fill(&s, 1, 1) != 1 {
		t.Error("the only place is not given")
	}
}

// Keys take places while they may, and release them, in any order. The model is a list of the
// places' keys.
func TestPlacesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 70).Draw(t, "most")
		reserve := max(most/16, 1)
		var s Shares[int]
		var taken []int
		count := func(k int) (n int) {
			for _, other := range taken {
				if other == k {
					n++
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				k := rapid.IntRange(0, 5).Draw(t, "key")
				has, left, may := count(k), most-len(taken), s.May(k, most)
				switch {
				case has == 0 && may != (left > 0):
					t.Fatalf("it has none, %d are left, and it may %t", left, may)
				case has > 0 && may != (left > reserve && has <= left-reserve):
					t.Fatalf("it has %d, %d are left, %d of them kept, and it may %t", has, left, reserve, may)
				case may:
					s.Take(k)
					taken = append(taken, k)
				}
			},
			"free": func(t *rapid.T) {
				if len(taken) > 0 {
					i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
					s.Free(taken[i])
					taken = slices.Delete(taken, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				if s.Total() != len(taken) || s.Total() > most {
					t.Fatalf("%d of %d are taken, counted as %d", len(taken), most, s.Total())
				}
				keys := make(map[int]int)
				for _, k := range taken {
					keys[k] = count(k)
				}
				if !maps.Equal(keys, s.of) {
					t.Fatalf("it remembers %v, want %v", s.of, keys)
				}
			},
		})
	})
}

// The total stays within its bound, owners keep their amounts while they want them, and no key
// grows beyond the amount left for the others. The model has each owner's amount: owner i belongs
// to key i%4.
func TestAmountsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 1000
		var s Shares[int]
		var has [12]int
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, wants := rapid.IntRange(0, len(has)-1).Draw(t, "owner"), rapid.IntRange(0, 600).Draw(t, "wants")
				had, left := has[i], most-s.Total()
				n := s.Set(i%4, had, wants, most)
				has[i] = n
				key, all := 0, 0
				for j, n := range has {
					all += n
					if j%4 == i%4 {
						key += n
					}
				}
				switch {
				case n > wants || n < min(had, wants):
					t.Fatalf("it had %d, wants %d, and gets %d", had, wants, n)
				case n > had && key > most-all:
					t.Fatalf("a key has taken %d, and leaves %d", key, most-all)
				case n < wants && n+1 > had && key+1 <= most-all-1:
					t.Fatalf("it had %d, wants %d, and gets only %d of the %d that were left", had, wants, n, left)
				}
			},
			"": func(t *rapid.T) {
				keys, all := make(map[int]int), 0
				for i, n := range has {
					if all += n; n > 0 {
						keys[i%4] += n
					}
				}
				if !maps.Equal(keys, s.of) || all != s.Total() || all > most {
					t.Fatalf("it remembers %v, %d of %d in all, want %v, %d", s.of, s.Total(), most, keys, all)
				}
			},
		})
	})
}
