package main

import (
	"fmt"
	"slices"

	"github.com/rdmactor/rdmactor/lab/sim/swarm"
)

// kind counts the failures of one class.
type kind struct {
	Name  string
	Times int
	First uint64 // the lowest seed
}

// countFailures adds failures to a copy of kinds, the most frequent kind first.
func countFailures(kinds []kind, failures []outcome) []kind {
	kinds = slices.Clone(kinds)
	for _, f := range failures {
		name := swarm.Class(f.Failure)
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.Name == name })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, kind{Name: name, First: f.Seed})
		}
		kinds[i].Times++
		kinds[i].First = min(kinds[i].First, f.Seed)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return b.Times - a.Times })
	return kinds
}

func printKinds(kinds []kind) {
	for _, k := range kinds {
		fmt.Printf("%6d times, first with seed %d: %s\n", k.Times, k.First, k.Name)
	}
}
