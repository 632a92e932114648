// Package iwarp is an RDMA device inside the process: an iWARP endpoint (MPA, DDP and RDMAP over
// TCP) in Go, as a cmid.Driver with its verbs.Device. It needs no kernel module, no privilege and
// no C library. Its peer may be another such process, soft-iWARP in a Linux kernel, or an iWARP
// adapter. The protocol is in iwarp/core. This package connects it with sockets.
//
//	ch, err := cmid.OpenChannel(iwarp.New())
//	ch, err := cmid.OpenChannel(iwarp.Config{CRC: true}.New())
//
// # Ownership
//
// An instance belongs to the loop it was opened on; its methods and upcalls happen there. It has
// no goroutine; only a Capture has one, which calls its Writer. Sockets, timers and queue pairs
// belong to their identifier. When an identifier is destroyed whose socket must still send or
// receive a FIN, the socket then belongs to the instance. The time for that, and the number of such
// sockets, are bounded.
//
// Memory regions belong to the device. They are in Go's heap, and nothing is pinned. Their keys
// and their addresses are random, so a peer learns nothing from them about the process. A message
// is read into one staging buffer per instance and copied to its place. Large segments are read
// directly to their place.
//
// # Ordering
//
// Nothing is reported from inside Do, CreateQP or a posting. At the end of each callback, and of
// each turn, completions are notified first, then events, in the order in which they came about:
// an identifier's Disconnected comes after the completions of everything that was received.
// Completions of a queue pair that come before its Established was delivered are held back until
// then. What is posted in one turn is written at the turn's end in one system call.
//
// # Errors
//
// Do returns errnos, wrapped. When a connection ends in any other way than by a FIN from both
// sides, its event has a *core.Error, with the Terminate that was sent or received. If nobody
// listens, that is reported as Rejected with status -111, and not as an error of Connect, because
// Connect does not wait.
//
// # Limitations
//
// No immediate data and no atomics (RFC 7306): nothing in MPA says whether the peer has them, and
// one that has not ends the connection when they come. No markers, no datagrams, no port mapper
// (iwpm), no start in the middle of a TCP stream. A device has one Capture at a time. Linux only;
// elsewhere Open fails with errors.ErrUnsupported. docs/iwarp.md lists what differs from the RFCs
// and from soft-iWARP, and why.
package iwarp
