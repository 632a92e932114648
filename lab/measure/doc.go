// Package measure is the harness of bench and lab/figures. Parts of it serve rdmactor perf and
// rdmactor time.
//
// A Scenario compares entries. Each entry is a way to send bytes. It is measured in two processes
// that run this program again, one as the server and one as the client. The scenario specifies
// their CPUs. A round measures every entry once, one after the other. The result is the median of
// the rounds.
//
// # Ownership
//
// A Child belongs to the goroutine that started it. It is killed when its context is done, and when
// the program that started it dies.
//
// # Errors
//
// An entry that fails is reported in its scenario's Result. The other entries are measured
// nevertheless.
//
// # Limitations
//
// Children exist only on Linux, because of sched_setaffinity(2).
package measure
