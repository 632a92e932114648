package main

import "fmt"

// addresses are the addresses on which a server listens.
type addresses struct{ Calls, Messages, Streams string }

// role identifies a process.
type role struct {
	Side   side
	Number uint64 // of its side's processes, from 1 on
	Server addresses
	Scale  scale
}

func (r role) String() string { return fmt.Sprintf("%v %d", r.Side, r.Number) }
