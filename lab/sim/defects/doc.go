// Defects puts defects back that this project has had, one after the other, and measures how many
// seeds the simulator needs to find each:
//
//	go run ./lab/sim/defects                         # those it has found, with their bounds
//	go run ./lab/sim/defects -n 2000 -only places -with calls
//	go run ./lab/sim/defects -table                  # as rows of docs/simulation.md
//	go run ./lab/sim/defects -list
//	go run ./lab/sim/defects -only invented
//
// A defect is an overlay for the go command (package overlay), so nothing on the disk changes, and
// the program has no switches for defects. A line of its output has the defect's name, how many
// seeds it took, the seed that has found it, and what the oracle said. Without the defect that seed
// has to pass.
//
// Each defect is real, but for those of the layer "invented": the test that was added when it was mended fails when it is back. The tests
// of this package hold that with a flag, and with another one that the simulator finds what it is
// said to find:
//
//	go test ./lab/sim/defects                        # do the overlays apply and compile?
//	go test ./lab/sim/defects -args -regressions     # minutes long
//	go test ./lab/sim/defects -args -proof           # minutes long
package main
