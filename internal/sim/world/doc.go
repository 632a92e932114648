// Package world simulates machines, the programs on them and the network between them, in virtual
// time, so that one number decides everything that happens.
//
// A World runs inside a testing/synctest bubble, and takes one step at a time: an event loop has
// one turn, a goroutine off the loops continues, a segment arrives, a scheduled fault happens, or
// time passes. The possible next steps are a list in a fixed order, from which the seed chooses.
// Programs are not written for it: they open a [rdma.Runtime] with the configuration of their
// [Process], and everything above the device's sockets is the production code.
//
// # Ownership
//
// A World belongs to the goroutine on which Run calls script. Programs run in goroutines that
// [Process.Go] started, in actors, and in handlers; of the World they may call Trace, Fail, Now and
// the methods of their Process.
//
// # Ordering
//
// Each step is a line of the trace. Two runs with one seed and one script have the same trace. If
// they do not, something depends on more than the seed: the order of a map, a goroutine that was
// not started by Process.Go, a wait outside the simulation, a random number of the process.
//
// # Errors
//
// Fail, a panic of a callback, and anything left at the end make a Result's Failure. A panic on a
// goroutine that the program started ends the process, as everywhere in Go.
//
// # Limitations
//
// Goroutines that the program starts with go, and its other waits, run at any time: use Process.Go
// and Process.Sleep. Proto.Actor's futures and timers are of that kind. Loops that spin or never
// block are not for simulated time.
package world
