package workload

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Owners that retain requests until the answers are sent wait forever if these requests use all
// memory. So none does in plans with that little memory, and some do elsewhere.
func TestNoneHoldsWhereMemoryIsShort(t *testing.T) {
	holds := func(s sideSpec) bool { return s.hold }
	for _, tt := range []struct {
		device       world.Kind
		crowd, holds bool
	}{
		{world.Embedded, true, false}, {world.Twin, true, false}, {world.TwinSoftRoCE, true, true}, {world.Embedded, false, true},
	} {
		held := 0
		for seed := range uint64(100) {
			d := Draw{
				Rand: rand.New(rand.NewPCG(seed, 1)), Device: tt.device, Machines: 2, Time: time.Second,
				Has: map[string]bool{connPump: true, connCrowd: true},
			}
			ops := drawConnections(d, 30)
			if slices.ContainsFunc(ops, func(o Op) bool { return o.(connOp).limits != nil }) != tt.crowd {
				continue
			}
			for _, o := range ops {
				if c := o.(connOp).dial; c != nil && slices.ContainsFunc(c.sides[:], holds) {
					held++
				}
			}
		}
		if held > 0 != tt.holds {
			t.Errorf("on device %v, memory is short: %t: %d owners hold requests", tt.device, tt.crowd, held)
		}
	}
}
