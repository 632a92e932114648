// Package world plays machines, the programs on them and the network between them, in virtual time,
// so that one number decides everything that happens.
//
// A World runs inside a testing/synctest bubble, and lets one thing happen at a time: an event loop
// has one turn, a goroutine off the loops goes on, a segment arrives, a scheduled fault happens, or
// time passes. What may happen next is a list in a fixed order, and the seed chooses. Programs are
// not written for it: they open a [rdma.Runtime] with the configuration of their [Process], and
// everything above the device's sockets is what runs in production.
//
// # Ownership
//
// A World belongs to the goroutine that Run calls script on. Programs run in goroutines that
// [Process.Go] started, in actors, and in handlers; of the World they may call Trace, Fail, Now
// and what their Process has.
//
// # Ordering
//
// Each thing that happens is a line of the trace. Two runs with one seed and one script have the
// same trace. Where they do not, something depends on more than the seed: the order of a map, a
// goroutine that was not started by Process.Go, a wait of its own, a random number of the
// process's.
//
// # Errors
//
// Fail, a panic of a callback, and what is left at the end make a Result's Failure. A panic on a
// goroutine of the program's own ends the process, as everywhere in Go.
//
// # Limitations
//
// Goroutines that the program starts with go, and waits of its own, run when they like: use
// Process.Go and Process.Sleep. Proto.Actor's futures and timers are of that kind. Loops that
// spin or never block are not for simulated time.
package world
