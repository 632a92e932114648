// Package conformance is what every driver passes: one suite that runs on the device in memory, on
// the embedded one and on the kernel's.
//
// [Run] issues every command in every state that the driver can reach, compares with what Linux
// answered (testdata/state-table.json), and plays what the manual pages promise. A [Rig] says
// where the driver runs and where it differs from the kernel on purpose. What the state machine
// guards is expected to be refused, whatever the kernel does.
//
// Each subtest has drivers and loops of its own, and its goroutine turns them.
package conformance
