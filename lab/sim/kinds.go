package main

import (
	"fmt"
	"slices"

	"github.com/rdmactor/rdmactor/lab/sim/swarm"
)

// printKinds counts failures by class, and prints the most frequent class first. The failures are
// in the order of their seeds.
func printKinds(failures []outcome) {
	type kind struct {
		name  string
		times int
		first uint64 // seed
	}
	var kinds []kind
	for _, f := range failures {
		name := swarm.Class(f.Failure)
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, kind{name: name, first: f.Seed})
		}
		kinds[i].times++
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return b.times - a.times })
	for _, k := range kinds {
		fmt.Printf("%6d times, first with seed %d: %s\n", k.times, k.first, k.name)
	}
}
