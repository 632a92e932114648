package main

import (
	"time"
)

// sample is what a process reports about itself.
type sample struct {
	At     time.Time
	Done   map[string]uint64 // how often each kind of work was done
	Errors map[string]uint64 // how often it failed, by its kind and the kind of the error
	Wrong  []string          // what must never happen
	Has    *footprint        // nil: not looked at this time
	Last   bool              // everything was shut down
}

// footprint is what a process has.
type footprint struct {
	RSS, Heap       uint64 // bytes; of the heap what is in use after a garbage collection
	Goroutines, FDs int
	IDs, Held       int // identifiers, and messages that owners retain
}
