// Defects puts defects back that this project has had, one after the other, and measures how many
// seeds the simulator needs to find each:
//
//	go run ./internal/sim/defects                        # all of them, with 500 seeds each
//	go run ./internal/sim/defects -n 2000 -only no-goodbye
//	go run ./internal/sim/defects -list
//
// A defect is an overlay for the go command (package overlay), so nothing on the disk changes, and
// the program has no switches for defects. A row of its output has the defect's name, how many
// seeds it took, the seed that has found it, and what the oracle said. The program without any
// defect has to pass the same seeds, which is tried first.
//
// Each defect is real: the test that was added when it was mended fails when it is back. The tests
// of this package hold that with a flag:
//
//	go test ./internal/sim/defects                       # do the overlays apply and compile?
//	go test ./internal/sim/defects -args -regressions    # minutes long
package main
