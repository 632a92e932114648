package memory

import "testing"

// Fitting is RegionSize the other way round.
func TestFitting(t *testing.T) {
	for n := 4096; n < 1<<22; n += 1 + n/97 {
		if m := Fitting(n); RegionSize(m) > n || RegionSize(m+1) <= n {
			t.Fatalf("%d bytes have room for %d", n, m)
		}
	}
}
