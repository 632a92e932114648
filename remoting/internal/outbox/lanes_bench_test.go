package outbox

import (
	"fmt"
	"testing"
)

// BenchmarkManyLanes measures a message while the peer meters as many targets as possible.
func BenchmarkManyLanes(b *testing.B) {
	for _, lanes := range []int{0, ownMost} {
		b.Run(fmt.Sprint(lanes), func(b *testing.B) {
			q := MakeQueue(8 << 20)
			for i := range lanes {
				q.Meter(fmt.Sprint(i))
			}
			r := record("target", 100)
			for b.Loop() {
				_ = q.Append(r, r.Size())
				p, _ := q.Take()
				q.Gone(&p)
				p.Free()
				q.Release(false)
				_, _ = q.Empty(), q.Ready()
			}
		})
	}
}

// BenchmarkMeterAndFree measures one target that the peer meters and frees among others.
func BenchmarkMeterAndFree(b *testing.B) {
	q := MakeQueue(8 << 20)
	for i := range ownMost - 1 {
		q.Meter(fmt.Sprint(i))
	}
	for b.Loop() {
		q.Meter("target")
		q.Free("target")
	}
}
