// Package measure is the harness of bench and internal/figures. Parts of it serve rdmactor perf
// and rdmactor time.
//
// A Scenario compares entries. Each is a way to send bytes. An entry is measured in two processes,
// which are this program again as a server and as a client, each on the CPU that the scenario
// says. A round measures every entry once, in turn. The result is the median of the rounds.
//
// # Ownership
//
// A Child belongs to the goroutine that started it. It is killed when the context that it was
// started with is done, and when the program that started it dies.
//
// # Errors
//
// An entry that fails is reported in its scenario's Result. The others are measured all the same.
//
// # Limitations
//
// Children are Linux's only, because of sched_setaffinity(2).
package measure
