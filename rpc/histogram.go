package rpc

import (
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A duration's bucket: four for the first 4.096 µs, then four in each doubling up to 137 s, and one
// for longer ones.
const (
	firstOctave = 12 // exponent in nanoseconds: below 2^12 the buckets are equally wide
	lastOctave  = 37
	perOctave   = 4
	buckets     = perOctave*(lastOctave-firstOctave+1) + 1
	// longestTaken bounds what one duration adds to the sum.
	longestTaken = 1 << 45
)

// bucketOf returns the bucket of a duration in nanoseconds.
func bucketOf(ns uint64) int {
	switch octave := bits.Len64(ns) - 1; {
	case octave < firstOctave:
		return int(ns >> (firstOctave - 2))
	case octave >= lastOctave:
		return buckets - 1
	default:
		return perOctave*(octave-firstOctave) + int(ns>>(octave-2))
	}
}

// bucketFrom returns the shortest duration of a bucket.
func bucketFrom(i int) time.Duration {
	if i < perOctave {
		return time.Duration(i) << (firstOctave - 2)
	}
	return time.Duration(perOctave+i%perOctave) << (firstOctave - 3 + i/perOctave)
}

// histogram counts durations. Any goroutine.
type histogram struct {
	counts [buckets]atomic.Uint64
	sum    atomic.Uint64
}

// add counts a duration that stands for weight calls. A clock may have gone back.
func (h *histogram) add(d time.Duration, weight uint64) {
	ns := uint64(min(max(d, 0), longestTaken))
	h.counts[bucketOf(ns)].Add(weight)
	h.sum.Add(ns * weight)
}

// readCounts returns the counts so far.
func (h *histogram) readCounts() (r Histogram) {
	r.sum = time.Duration(min(h.sum.Load(), math.MaxInt64))
	for i := range h.counts {
		r.counts[i] = h.counts[i].Load()
	}
	return r
}

// Histogram is how long calls have taken. Its 105 buckets are at most a quarter wider than where
// they begin, from 4 µs to 137 s. Shorter times have four buckets of 1 µs. Quantiles are as exact.
type Histogram struct {
	counts [buckets]uint64
	sum    time.Duration
}

// Count returns how many calls it stands for.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Sum returns how long they have taken together, at most 292 years. One counts as 9.8 hours at
// most.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Quantile returns how long a part q of the calls has taken at most: 0.5 is the median. 0: there
// are no calls. Times beyond 137 s count as that.
func (h *Histogram) Quantile(q float64) time.Duration {
	want, n := min(max(q, 0), 1)*float64(h.Count()), 0.0
	for i, c := range h.counts {
		if n += float64(c); c == 0 || n < want {
			continue
		}
		from := bucketFrom(i)
		if i == buckets-1 {
			return from
		}
		part := 1 - (n-want)/float64(c)
		return from + time.Duration(part*float64(bucketFrom(i+1)-from))
	}
	return 0
}

// Octaves returns how many calls took less than each bound. The bounds are 4.096 µs and its
// doublings up to 137 s. Longer calls are in Count only.
func (h *Histogram) Octaves(yield func(bound time.Duration, calls uint64) bool) {
	var n uint64
	for i, c := range h.counts[:buckets-1] {
		n += c
		if i%perOctave == perOctave-1 && !yield(bucketFrom(i+1), n) {
			return
		}
	}
}

// Add adds another histogram's counts.
func (h *Histogram) Add(o *Histogram) {
	h.sum = min(h.sum, math.MaxInt64-o.sum) + o.sum
	for i, c := range o.counts {
		h.counts[i] += c
	}
}

// Since returns the counts since before was read, of the same method. Its quantiles are recent
// ones, those of a MethodInfo are of all calls since the start.
func (h *Histogram) Since(before *Histogram) (r Histogram) {
	r.sum = max(h.sum-before.sum, 0)
	for i, c := range h.counts {
		r.counts[i] = c - min(c, before.counts[i])
	}
	return r
}

func (h Histogram) String() string {
	return fmt.Sprintf("%d: p50 %v, p90 %v, p99 %v", h.Count(), h.Quantile(0.5), h.Quantile(0.9), h.Quantile(0.99))
}
