// Sim plays small worlds of machines, programs and faults, in virtual time, and judges them. One
// number, the seed, decides everything in a world (docs/simulation.md).
//
//	go run ./lab/sim -seed 17              # play one, and print what happens
//	go run ./lab/sim -seeds 1000           # play many, on all processors
//	go run ./lab/sim -for 8h -keep-going   # a night; the next time goes on from there
//
// Every world is played twice, because two runs of one seed must not differ. A failure is printed
// with its seed, and with the command that repeats what is left of it when all that it does not
// need is left out:
//
//	go run ./lab/sim -seed 17 -without 3,7-12
//
// Exit status 1 is a failure of a world.
//
// Worlds are played by other processes of the same program, one for each processor. So one that
// panics or hangs costs its seed only, and is reported with what it has printed.
package main
