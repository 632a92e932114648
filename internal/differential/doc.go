// Package differential runs the same random command sequence on two drivers, side by side and
// through the state machine's guards. After each step it compares what they show: errnos, events
// with status, private data and depths, states, addresses.
//
// A [Pair] is two drivers that should agree, and a guide: the in-memory twin. It runs in virtual
// time, so a sequence is a function of its seed. To draw a [Program], the generator looks at the
// states of the guide's identifiers. Most commands are the next ones that an application would
// send, so sequences get deep. The rest is drawn from all commands. Both drivers run the program.
// A difference that [Accepted] does not list is shrunk to the fewest commands that still show it,
// and printed as a listing that [ParseProgram] reads.
//
// There are two active identifiers (a, b), two passive ones (p, q), and the children of the
// passive ones in the order in which their requests were delivered (c1, c2 and on). Ports, queue
// pair numbers, depths above 16 and the length of "as much private data as there may be" are
// compared by name, because each driver has its own. The length of timers is not compared:
// TimewaitExit is left out, and nothing is waited for longer than a driver's Patience.
//
// No command that would crash or hang a kernel reaches a driver. A wrapper around each driver
// refuses it, without asking the state machine, and a run in which that was necessary is an error.
//
// A run belongs to one goroutine, which turns all loops.
package differential

//go:generate go test . -run TestDocs -update
