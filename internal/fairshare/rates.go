package fairshare

import "time"

// Rates bounds how often each key may do something. The burst of a key is as much as in RatesBurst
// at its rate. The zero Rates is empty. The caller locks.
//
// It remembers at most the last 2*RatesKept keys. A forgotten key begins anew, so a flood of
// invented keys causes no other key to be refused, and gains only the burst that every key has.
type Rates[K comparable] struct {
	// the time up to which a key has used its rate, of the last RatesKept keys, and of those before
	now, before map[K]time.Time
}

const (
	// RatesBurst is the burst of a key, as a time at its rate.
	RatesBurst = 4 * time.Second
	// RatesKept is half of the maximum number of remembered keys.
	RatesKept = 4096
)

// Take reports whether k may act now, and if so counts the act. perSecond is its rate.
func (r *Rates[K]) Take(k K, perSecond int, now time.Time) (ok bool) {
	used, known := r.now[k]
	if !known {
		used = r.before[k]
	}
	if used.Before(now) {
		used = now
	}
	next := used.Add(time.Second / time.Duration(perSecond))
	if ok = next.Sub(now) <= RatesBurst; ok {
		used = next
	}
	if !known && len(r.now) >= RatesKept {
		r.now, r.before = nil, r.now
	}
	if r.now == nil {
		r.now = make(map[K]time.Time)
	}
	r.now[k] = used
	return ok
}

// Remembered returns an upper bound on the number of remembered keys.
func (r *Rates[K]) Remembered() int { return len(r.now) + len(r.before) }
