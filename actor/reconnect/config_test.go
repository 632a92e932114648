package reconnect

import (
	"fmt"
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

// A Limiter knows of an address as long as an actor dials it, and no longer: a program that dials
// ever new addresses must not make it grow.
func TestLimiterForgetsAddresses(t *testing.T) {
	l := NewLimiter(8, 1e9)
	now := time.Unix(1, 0)
	for i := range 1000 {
		addr := fmt.Sprintf("10.0.%d.%d:7471", i/256, i%256)
		first, second := l.Ticket(nil, addr, func() {}), l.Ticket(nil, addr, func() {})
		for _, k := range []*Ticket{first, second} {
			now = now.Add(time.Second)
			if ok, after := k.Enter(now); !ok {
				t.Fatalf("dial %d has no turn, and is to ask again after %v", i, after)
			}
		}
		first.Done()
		if l.dials.Has(addr) != 1 {
			t.Fatalf("%d dials to %s are under way, want one", l.dials.Has(addr), addr)
		}
		second.Done()
	}
	if l.dials.Total() != 0 || l.line.Len() != 0 {
		t.Errorf("%d dials are counted and %d tickets wait, with no dial under way", l.dials.Total(), l.line.Len())
	}
}
