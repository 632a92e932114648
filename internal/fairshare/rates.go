package fairshare

import "time"

// Rates bounds how often each key may do something. A key may do as much at once as in RatesBurst
// at its rate. The zero Rates knows none. The caller locks.
//
// It remembers at most 2*RatesKept keys, those that came last. Whoever is forgotten begins anew: so
// a flood of invented keys refuses nobody else, and gains no more than each key may have anyway.
type Rates[K comparable] struct {
	// when a key's time is used up, if that is yet to come: of the last RatesKept keys, and of
	// those before
	now, before map[K]time.Time
}

const (
	// RatesBurst is what a key may do at once, as a time at its rate.
	RatesBurst = 4 * time.Second
	// RatesKept is half of the keys that are remembered at most.
	RatesKept = 4096
)

// Take reports whether k may do it now, and notes that it does. perSecond is its rate.
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

// Remembered is how many keys something is known of, at most.
func (r *Rates[K]) Remembered() int { return len(r.now) + len(r.before) }
