// Package differential runs the same random command sequence on two drivers, side by side. The
// commands pass the state machine's guards. After each turn it compares errnos, events with their
// status, private data and depths, states, and addresses.
//
// A [Pair] is two drivers that should agree, and a guide. The guide is the in-memory twin, which
// runs in virtual time, so that a sequence depends on its seed only. To draw a [Program], the
// generator looks at the states of the guide's identifiers. Most commands are the next ones that an
// application would send, so sequences get deep. The rest is drawn from all commands. Both drivers
// run the program. A difference that [Accepted] does not list is shrunk to the fewest commands that
// still show it, and printed as a listing that [ParseProgram] reads.
//
// There are two active identifiers (a, b) and two passive ones (p, q). The children of the passive
// ones are c1, c2 and so on, in the order in which their requests were delivered. Ports, queue pair
// numbers, depths above 16 and the length of the longest private data are compared by name, because
// each driver has its own values. The length of timers is not compared. So TimewaitExit is left
// out, and no wait is longer than a driver's Patience.
//
// A wrapper around each driver refuses commands that would crash or hang a kernel. It decides that
// without the state machine. If it has to refuse a command, the run ends with an error, because the
// state machine should have refused it.
//
// A run belongs to one goroutine, which turns all loops.
package differential

//go:generate go test . -run TestDocs -update
