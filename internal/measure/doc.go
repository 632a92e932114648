// Package measure is the harness of everything here that measures: bench, internal/figures, and
// the parts of it that rdmactor perf and rdmactor time need.
//
// A Scenario compares entries: a way to send bytes each. Settings.Measure measures an entry in two
// processes, this program again as a server and as a client, each on the CPU that the scenario
// says. A round measures every entry once, in turn. What counts is the median of the rounds.
//
// # Ownership
//
// A Child belongs to the goroutine that started it, and to the context that it was started with:
// it is killed when that is done. It is also killed when the program dies that started it.
//
// # Errors
//
// An entry that fails is reported in its scenario's Result, and the others are measured.
//
// # Limitations
//
// Children are Linux's only, because of sched_setaffinity(2).
package measure
