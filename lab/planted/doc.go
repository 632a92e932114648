// Package planted tests the tests that internal/docscheck/manpages.md cites. A fault breaks one
// sentence of a man page, in a driver or above it; a test cited for that sentence must then fail. A
// test that still passes shows nothing, whatever its name.
//
//	go test ./lab/planted                                # do the faults apply to code and rows?
//	go test ./lab/planted -args -planted                 # plant each, and run the tests of its rows
//	go test ./lab/planted -args -planted -fault backlog  # only those with that word in their names
//	go test -tags vm -timeout 60m ./lab/planted -run TestPlantedKernel -args -planted
//
// A fault replaces text in one file by means of go build's -overlay, so no file on disk changes.
// The text must occur exactly once: a fault that no longer applies fails the test, even without
// flags.
//
// # Rules
//
// Every row that cites a test has a fault. With a fault planted, at least one cited test of each of
// its rows fails. With all of them planted, one after the other, each cited test fails at least
// once: none is cited for a sentence that it does not test. A scenario of the conformance suite is
// one test, whichever device it runs on; it must fail on a real one.
//
// Faults of cmid/ucm are planted in a virtual machine (tag vm), all others anywhere.
package planted
