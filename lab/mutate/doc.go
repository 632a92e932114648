// Mutate plants small defects into a package, one at a time, and reports which of them its tests do
// not find.
//
//	go run ./lab/mutate ./rpc -n 40 -seed 7
//	go run ./lab/mutate ./internal/iwarp/core -n 40 -seed 7 -own
//	go run ./lab/mutate ./actor/internal/datapath -n 40 -seed 7 -sim connections -seeds 300
//
// A defect changes the syntax tree: a negated condition, a deleted statement, two neighbours swapped,
// an off by one, a dropped error, a wrong constant. The sites are drawn from the package's files with
// the seed; those that do not compile do not count.
//
// All defects are compiled together: each is a copy of its function, which the original calls if
// $MUTANT is the number of the defect. The files on disk do not change: the copies are passed to the
// go command with its -overlay flag.
//
// The tests run once without a defect, twelve in a process. That shows which defects a process
// reaches and how long it takes. Each defect is then given to the processes that reach it, the
// quickest first, until a test fails: those of the package, and then, unless -own is set, those of
// the packages that import it, beginning with the one that imports least. A process has found the
// defect too if it takes three times as long as without one, and five seconds, and then exceeds four
// times that limit in a second run: the machine may have been busy. Tests run with -short. Those
// that fail without a defect are named and left out.
//
// With -sim the simulation plays these workloads instead of the tests, so that two runs compare
// what tests and simulation find. The seeds must pass without a defect. The limits are the same.
package main
