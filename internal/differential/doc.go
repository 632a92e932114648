// Package differential runs the same random command sequence on two drivers, side by side and
// through the state machine's guards, and compares after each step what they answered: errnos,
// events with status, private data and depths, states, addresses.
//
// A [Pair] is two drivers that ought to agree, and a guide: the in-memory twin, which runs in
// virtual time and so makes the sequence a function of its seed. A [Program] is drawn by asking
// the guide where its identifiers stand, so that most commands are the next ones an application
// would send and sequences get deep; the rest is drawn from everything. Both drivers run the
// program; a difference that [Accepted] does not list is shrunk to the fewest commands that still
// show it, and printed as a listing that [ParseProgram] reads.
//
// There are two active identifiers (a, b), two passive ones (p, q), and the children of the
// passive ones in the order in which their requests were told (c1, c2 and on). Ports, queue pair
// numbers, depths above 16 and the length of "as much private data as there may be" are compared
// by name, because each driver has its own. The length of timers is not compared: TimewaitExit is
// left out, and what takes longer than a driver's patience is not waited for.
//
// No command that would crash or hang a kernel reaches a driver: a wrapper around each one refuses
// it on its own account, not by asking the state machine, and a run in which it had to is an
// error.
//
// A run belongs to one goroutine, which turns all loops.
package differential

//go:generate go test . -run TestDocs -update
