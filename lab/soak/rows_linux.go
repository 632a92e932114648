package main

import "time"

// row is a sample with a footprint.
type row struct {
	At     time.Duration // since the soak began
	Pair   string
	Side   side
	Number uint64 // of the side's processes
	Calm   bool   // there were no faults for a while
	footprint
	Done, Errors uint64
}

// recovery is a fault, and the time until every kind of work continued.
type recovery struct {
	At   time.Duration
	Pair string
	fault
	After time.Duration
}

func sum(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}
