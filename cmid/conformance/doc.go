// Package conformance is the suite that every driver passes: the device in memory, the embedded
// one and the kernel's.
//
// [Run] issues every command in every state that the driver can reach, compares with what Linux
// answered (testdata/state-table.json), and checks what the manual pages promise. A [Rig] says
// where the driver runs, and where it differs from the kernel on purpose. Commands that the state
// machine guards must be refused, whatever the kernel does.
//
// Each subtest has drivers and loops of its own, and its goroutine turns them.
package conformance
