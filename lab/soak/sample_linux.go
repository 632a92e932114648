package main

import (
	"time"
)

// sample is a report of a process about itself.
type sample struct {
	At     time.Time
	Done   map[string]uint64 // how often each kind of work was done
	Errors map[string]uint64 // number of failures, by kind of work and kind of error
	Wrong  []string          // events that must never happen
	Has    *footprint        // nil: not measured this time
	Last   bool              // everything was shut down
}

// footprint is the resources of a process.
type footprint struct {
	RSS, Heap       uint64 // bytes; heap in use after a garbage collection
	Goroutines, FDs int
	IDs, Held       int // identifiers, and messages that owners retain
}
