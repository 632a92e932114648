package fairshare

import (
	"math/rand/v2"
	"testing"
)

// The total stays within its bound, owners keep their amounts while they want them, and no key
// grows beyond the amount left for the others.
func TestAmounts(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		a := Amounts[int]{Most: 1000}
		var has [12]int64 // of owner i, which is of key i%4
		for range 2000 {
			i := rnd.IntN(len(has))
			wants, had, left := rnd.Int64N(600), has[i], a.Most-a.Total()
			may := a.Set(i%4, had, wants)
			switch has[i] = may; {
			case may > wants || may < min(had, wants):
				t.Fatalf("seed %d: it had %d, wants %d, and gets %d", seed, had, wants, may)
			case may > had && may-had > left/2+had:
				t.Fatalf("seed %d: it had %d, and gets %d of the %d that were left", seed, had, may, left)
			}
			var all int64
			of := make(map[int]int64)
			for i, n := range has {
				all += n
				of[i%4] += n
			}
			if all != a.Total() || all > a.Most {
				t.Fatalf("seed %d: all have %d, counted as %d", seed, all, a.Total())
			}
			for k, n := range of {
				if a.of[k] != n {
					t.Fatalf("seed %d: %d has %d, counted as %d", seed, k, n, a.of[k])
				}
			}
			if k := i % 4; may > had && of[k] > a.Most-all {
				t.Fatalf("seed %d: one key has taken %d, and leaves %d", seed, of[k], a.Most-all)
			}
		}
		for i := range has {
			a.Set(i%4, has[i], 0)
		}
		if a.Total() != 0 || len(a.of) != 0 {
			t.Errorf("seed %d: %d is left, of %d keys", seed, a.Total(), len(a.of))
		}
	}
}
