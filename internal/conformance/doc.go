// Package conformance is the suite that every driver must pass: the device in memory, the embedded
// device and the kernel's.
//
// [Run] issues every command in every state that the driver can reach, and compares the answers
// with those of Linux (testdata/state-table.json). It also checks the promises of the manual pages.
// A [Rig] describes where the driver runs, and where it differs from the kernel on purpose.
// Commands that the state machine guards must be refused, whatever the kernel does.
//
// Each subtest has its own drivers and loops. The subtest's goroutine turns the loops.
package conformance
