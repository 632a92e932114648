// Mutate plants small defects into a package, one at a time, and reports which of them its tests do
// not find.
//
//	go run ./lab/mutate ./rpc -n 40 -seed 7
//	go run ./lab/mutate ./internal/iwarp/core -n 40 -seed 7 -own
//	go run ./lab/mutate ./actor/internal/datapath -n 40 -seed 7 -sim connections -seeds 300
//
// A defect changes the syntax tree: a negated condition, a deleted statement, two neighbours swapped,
// an off by one, a dropped error, a wrong constant. The sites are drawn from the package's files with
// the seed; those that do not compile do not count. For each defect mutate runs the package's tests
// and then, unless -own is set, the tests of the packages that import it. The files on disk do not
// change: defects are passed to the go command with its -overlay flag.
//
// With -sim the simulation plays these workloads instead of the tests, so that two runs compare
// what tests and simulation find.
//
// Without a defect, the tests or the seeds must pass. Those that take ten times as long as then,
// and half a minute, have found the defect.
package main
