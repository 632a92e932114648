// Package sides has the two sides of a connection in a test: each is a driver, with a channel on a
// loop that the test's goroutine turns.
//
// The conformance suite and the tests of the device in memory run on it; pairs of drivers use its
// [Loops]. A [World] makes identifiers, connections and queue pairs. It waits in the drivers'
// time, virtual or real, and ends the test when something other than what it waits for happens.
// All of it belongs to the test's goroutine.
package sides
