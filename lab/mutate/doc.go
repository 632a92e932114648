// Mutate plants small defects into a package, one at a time, and reports which of them its tests do
// not find.
//
//	go run ./lab/mutate ./rpc -n 40 -seed 7
//	go run ./lab/mutate ./iwarp/core -n 40 -seed 7 -own
//
// A defect changes the syntax tree: a negated condition, a deleted statement, two neighbours swapped,
// an off by one, a dropped error, a wrong constant. The sites are drawn from the package's files with
// the seed; those that do not compile do not count. For each defect mutate runs the package's tests
// and then, unless -own is set, the tests of the packages that import it. The files on disk do not
// change: defects are passed to the go command with its -overlay flag.
//
// The package's tests must pass without a defect. A test that takes ten times as long as then, and
// half a minute, has found the defect.
package main
