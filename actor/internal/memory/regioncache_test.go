package memory

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Fitting is RegionSize the other way round.
func TestFitting(t *testing.T) {
	for n := 4096; n < 1<<22; n += 1 + n/97 {
		if m := Fitting(n); RegionSize(m) > n || RegionSize(m+1) <= n {
			t.Fatalf("%d bytes have room for %d", n, m)
		}
	}
}

// noMemory is a domain of a device that has no memory left.
type noMemory struct{ verbs.PD }

func (noMemory) Alloc(int, verbs.Access) (*verbs.MR, error) { return nil, unix.ENOMEM }

// A device's ENOMEM costs the budget nothing: the memory can be had later.
func TestFailedRegionCostsNothing(t *testing.T) {
	const all = 1 << 20
	b := paperBudget(t, all)
	pd := &paper{}
	short := NewRegionCache(paperDevice{pd: pd}, noMemory{}, 0, b, false)
	for range 100 {
		if _, err := short.Get(all / 2); !errors.Is(err, unix.ENOMEM) {
			t.Fatalf("the error is %v, want the device's", err)
		}
	}
	if bytes, _ := b.InUse(); bytes != 0 || b.Free != all {
		t.Errorf("%d bytes are in use, and %d of %d free, although nothing was handed out", bytes, b.Free, all)
	}
	if !b.Admits(&claim{b: b, n: all / 2}) {
		t.Error("the budget is used up")
	}
}
