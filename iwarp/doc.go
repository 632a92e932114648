// Package iwarp is an RDMA device inside the process: an iWARP endpoint (MPA, DDP and RDMAP over
// TCP) in Go, as a cmid.Driver with its verbs.Device. It needs no kernel module, no privilege and
// no C library. Its peer may be another such process, soft-iWARP in a Linux kernel, or an iWARP
// adapter. The protocol is in internal/iwarp/core. This package connects it with sockets.
//
//	ch, err := cmid.OpenChannel(iwarp.New())
//	ch, err := cmid.OpenChannel(iwarp.New(iwarp.Config{CRC: true}))
//
// # Ownership
//
// An instance belongs to the loop on which it was opened; its methods and upcalls run there. It has
// no goroutine; only a Capture has one, which calls its Writer. Sockets, timers and queue pairs
// belong to their identifier. If the socket of a destroyed identifier must still send or receive a
// FIN, it then belongs to the instance. The time for that, and the number of such sockets, are
// bounded.
//
// Memory regions belong to the device. They are in Go's heap, and nothing is pinned. Their keys and
// their addresses are random, so they reveal nothing about the process to a peer. A message is read
// into one input buffer per instance and copied to its destination. Large segments are read
// directly to their destination.
//
// # Ordering
//
// Nothing is reported from inside Do, CreateQP or a posting. At the end of each callback, and of
// each turn, completions are notified first, then events, in the order in which they occurred: an
// identifier's Disconnected follows the completions of everything that was received. Completions of
// a queue pair before the delivery of its Established are held back until then. All work requests
// that are posted in one turn are written at the turn's end in one system call.
//
// # Errors
//
// Do returns errnos, wrapped. When a connection ends in any other way than by a FIN from both
// sides, its event has a *core.Error, with the Terminate that was sent or received. A missing
// listener is reported as Rejected with status -111, and not as an error of Connect, because
// Connect does not wait. A callback that panics costs nothing of the device. One that calls
// runtime.Goexit ends the loop, and all identifiers there (package eventloop).
//
// # Limitations
//
// No immediate data and no atomics (RFC 7306): MPA does not negotiate them, and a peer without them
// ends the connection when they arrive. No markers, no datagrams, no port mapper (iwpm), no start
// in the middle of a TCP stream. A device has one Capture at a time. Linux only; elsewhere Open
// fails with errors.ErrUnsupported. docs/iwarp.md lists the differences from the RFCs and from
// soft-iWARP, and their reasons.
package iwarp
