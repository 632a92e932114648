package reconnect

import (
	"testing"
	"time"
)

// The longest pause doubles up to the most there may be, however often it has failed.
func TestLongestPause(t *testing.T) {
	b := Backoff{First: 3 * time.Second}.WithDefaults()
	if b.Most != 30*time.Second || b.Stable != 10*time.Second {
		t.Errorf("the defaults are %+v", b)
	}
	for before, want := range map[int]time.Duration{
		0: 3 * time.Second, 1: 6 * time.Second, 3: 24 * time.Second, 4: 30 * time.Second, 31: 30 * time.Second, 1 << 40: 30 * time.Second,
	} {
		if d := b.Longest(before); d != want {
			t.Errorf("after %d pauses %v, want %v", before, d, want)
		}
	}
	if d := (Backoff{First: time.Minute, Most: time.Second}).Longest(0); d != time.Second {
		t.Errorf("a first pause that is longer than the most is %v", d)
	}
}
