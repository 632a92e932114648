package main

import "fmt"

// addresses are where a server listens.
type addresses struct{ Calls, Messages, Streams string }

// role is what a process is.
type role struct {
	Side   side
	Number uint64 // of its side's processes, from 1 on
	Server addresses
	Scale  scale
}

func (r role) String() string { return fmt.Sprintf("%v %d", r.Side, r.Number) }
