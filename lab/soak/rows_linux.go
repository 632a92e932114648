package main

import "time"

// row is a sample with a footprint.
type row struct {
	At   time.Duration // since the soak began
	Side side
	Calm bool // there were no faults for a while
	footprint
}

// recovery is a fault, and the time until every kind of work continued.
type recovery struct {
	fault
	After time.Duration
}
