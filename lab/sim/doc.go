// Sim plays small worlds of machines, programs and faults in virtual time, and judges them. A
// single number, the seed, decides everything in a world (README.md).
//
//	go run ./lab/sim -seed 17              # play one, and print what happens
//	go run ./lab/sim -seeds 1000           # play many, on all processors
//	go run ./lab/sim -for 8h -keep-going   # a night
//
// Every world is played twice, because two runs of one seed must not differ. A failure is printed
// with its seed, and with the command that repeats it without the items that it does not need:
//
//	go run ./lab/sim -seed 17 -without 3,7-12
//
// Exit status 1 is a failure of a world.
//
// Other processes of the same program play the worlds, one for each processor. A world that panics
// or hangs therefore costs only its seed, and is reported with its output.
package main
