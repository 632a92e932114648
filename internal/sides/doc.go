// Package sides runs the two sides of a connection in a test. Each side is a driver with a channel
// on a loop that the test's goroutine turns.
//
// The conformance suite and the tests of the device in memory use it. A [World] makes identifiers,
// connections and queue pairs. It waits in the drivers' time, which is virtual or real. An
// unexpected event ends the test. Everything belongs to the test's goroutine.
package sides
