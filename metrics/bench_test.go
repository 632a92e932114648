package metrics

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// BenchmarkRead reads a loop with 10,000 identifiers.
func BenchmarkRead(b *testing.B) {
	const identifiers = 10_000
	sys, rt := open(b, "a")
	owner := sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, rt.OnLoop()))
	for range identifiers {
		rt.CreateID(owner)
	}
	for rt.Loops()[0].States[states.Idle] < identifiers {
	}
	s := New(Config{Runtime: rt})
	for b.Loop() {
		s.Read(context.Background())
	}
}
