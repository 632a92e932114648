package fairshare

import (
	"testing"
	"time"
)

// take tries n times at one moment, and returns how often it may.
func take(r *Rates[int], k, n, perSecond int, at time.Time) (may int) {
	for range n {
		if r.Take(k, perSecond, at) {
			may++
		}
	}
	return may
}

func TestRates(t *testing.T) {
	var r Rates[int]
	at := time.Unix(1, 0)
	for _, step := range []struct {
		wait       time.Duration
		k, n, want int
	}{
		{0, 1, 100, 40}, // four seconds' worth in a burst
		{0, 2, 1, 1},    // others are not touched
		{time.Second, 1, 100, 10},
		{99 * time.Millisecond, 1, 1, 0},
		{time.Millisecond, 1, 2, 1},
		{time.Hour, 1, 100, 40}, // longer pauses save nothing
	} {
		at = at.Add(step.wait)
		if n := take(&r, step.k, step.n, 10, at); n != step.want {
			t.Errorf("at %v key %d may %d of %d, want %d", at, step.k, n, step.n, step.want)
		}
	}
}

// A key that asks for much more than its rate gets exactly its rate: refusals do not count.
func TestRatesOfTheGreedy(t *testing.T) {
	var r Rates[int]
	begin, may := time.Unix(1, 0), 0
	for ms := range 60_000 {
		may += take(&r, 1, 3, 100, begin.Add(time.Duration(ms)*time.Millisecond))
	}
	if want := (60 + 4) * 100; may < want-2 || may > want {
		t.Errorf("%d in a minute, want %d", may, want)
	}
}

// The table has a bound. Invented keys neither cause others to be refused, nor reset a greedy one
// as long as they are fewer than the table holds.
func TestRatesRememberFew(t *testing.T) {
	var r Rates[int]
	at := time.Unix(1, 0)
	take(&r, -1, 100, 10, at)
	for k := range 100 * RatesKept {
		if !r.Take(k, 10, at) {
			t.Fatalf("key %d is refused", k)
		}
		if k%(RatesKept-1) == 0 && r.Take(-1, 10, at) {
			t.Fatalf("the greedy key is free again after %d others", k)
		}
		if n := r.Remembered(); n > 2*RatesKept {
			t.Fatalf("%d keys are remembered", n)
		}
	}
}
