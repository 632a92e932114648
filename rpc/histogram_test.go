package rpc

import (
	"math"
	"testing"
	"time"
)

// Every duration lies in its bucket, and no bucket is wider than a quarter of where it begins.
func TestBuckets(t *testing.T) {
	for i := range buckets - 1 {
		from, to := bucketFrom(i), bucketFrom(i+1)
		if bucketOf(uint64(from)) != i || bucketOf(uint64(to-1)) != i {
			t.Errorf("bucket %d, %v to %v: its ends lie in %d and %d", i, from, to, bucketOf(uint64(from)), bucketOf(uint64(to-1)))
		}
		if i >= perOctave && (to-from)*4 > from {
			t.Errorf("bucket %d, %v to %v, is too wide", i, from, to)
		}
	}
	if bucketOf(math.MaxUint64) != buckets-1 {
		t.Error("what is longest is not in the last bucket")
	}
}

func TestQuantiles(t *testing.T) {
	var h histogram
	for i := 1; i <= 10_000; i++ {
		h.add(time.Duration(i)*time.Microsecond, 1)
	}
	r := h.readCounts()
	for _, tt := range []struct {
		q            float64
		want, within time.Duration
	}{
		// a bucket whose times are spread evenly is divided exactly
		{0.25, 2500 * time.Microsecond, 2 * time.Microsecond},
		{0.5, 5 * time.Millisecond, 2 * time.Microsecond},
		{0.99, 9900 * time.Microsecond, 9900 * time.Microsecond / 4},
		{1, 10 * time.Millisecond, 10 * time.Millisecond / 4},
	} {
		if got := r.Quantile(tt.q); (got - tt.want).Abs() > tt.within {
			t.Errorf("%v: %v, want %v within %v", tt.q, got, tt.want, tt.within)
		}
	}
	if r.Count() != 10_000 || r.Sum() != 50_005*time.Millisecond {
		t.Error(r.Count(), r.Sum())
	}
	before, n := time.Duration(0), uint64(0)
	r.Octaves(func(bound time.Duration, calls uint64) bool {
		if bound <= before || calls < n {
			t.Errorf("%d up to %v, and %d up to %v", n, before, calls, bound)
		}
		before, n = bound, calls
		return true
	})
	if n != 10_000 || before < 2*time.Minute {
		t.Error(n, before)
	}
	if none := (Histogram{}); none.Quantile(0.99) != 0 {
		t.Error(none.Quantile(0.99))
	}
}

// The difference of two readings has its own quantiles.
func TestSince(t *testing.T) {
	var h histogram
	for range 100_000 {
		h.add(time.Millisecond, 1)
	}
	before := h.readCounts()
	for range 100 {
		h.add(time.Second, 1)
	}
	now := h.readCounts()
	recent := now.Since(&before)
	if all, p := now.Quantile(0.99), recent.Quantile(0.99); all > 2*time.Millisecond || p < time.Second || p > 1250*time.Millisecond {
		t.Errorf("p99 is %v, and recently %v", all, p)
	}
	if recent.Count() != 100 || recent.Sum() != 100*time.Second {
		t.Error(recent.Count(), recent.Sum())
	}
	if none := before.Since(&now); none.Count() != 0 || none.Sum() != 0 { // the wrong way round
		t.Error(none.Count(), none.Sum())
	}
}

// A clock that jumps, either way, costs one wrong entry, and neither the sum nor later ones.
func TestClocksThatJump(t *testing.T) {
	var h histogram
	h.add(math.MinInt64, 16)
	h.add(-time.Hour, 1)
	h.add(math.MaxInt64, 16)
	r := h.readCounts()
	if r.Count() != 33 || r.Sum() < 0 || r.Sum() > 16*longestTaken || r.counts[0] != 17 || r.counts[buckets-1] != 16 {
		t.Error(r.Count(), r.Sum(), r.counts[0])
	}
	m := &methodCounts{}
	w := stopwatch{weight: 1, began: time.Now().Add(time.Hour)}
	w.stop(m)
	if r = m.latency.readCounts(); r.counts[0] != 1 {
		t.Error(r)
	}
}

// Streams may last for hours, and a server may have many: the sum saturates.
func TestLongestSum(t *testing.T) {
	var h histogram
	for range 300_000 {
		h.add(24*time.Hour, 1)
	}
	r := h.readCounts()
	if r.Sum() != math.MaxInt64 {
		t.Error(r.Sum())
	}
	r.Add(&Histogram{sum: time.Hour})
	if r.Sum() != math.MaxInt64 {
		t.Error(r.Sum())
	}
}

// The calls that are timed stand for all.
func TestTimed(t *testing.T) {
	var sum, last, longest uint64
	const calls = 1_000_000
	for n := uint64(1); n <= calls; n++ {
		w := timedWeight(n)
		if n <= alwaysTimed && w != 1 {
			t.Fatalf("call %d counts %d times", n, w)
		}
		if sum += w; w > 0 {
			longest, last = max(longest, n-last), n
		}
	}
	if sum < calls*99/100 || sum > calls*101/100 || longest > 4*timedEvery {
		t.Errorf("%d calls count as %d; %d in a row are not timed", calls, sum, longest)
	}
}
