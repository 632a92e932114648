// Package sides is the two sides of a connection in a test: a driver each, with a channel on a loop
// that the test's goroutine turns.
//
// The conformance suite runs on it, and so do the tests of the device in memory. A [World] makes
// identifiers, connections and queue pairs, waits in the drivers' time, virtual or real, and ends
// the test when something else happens than it asks for. All of it belongs to the test's
// goroutine.
package sides
