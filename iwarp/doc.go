// Package iwarp is an RDMA device inside the process: an iWARP endpoint (MPA, DDP and RDMAP over
// TCP) in Go, as a cmid.Driver with its verbs.Device. It needs no kernel module, no privilege and
// no C library. Its peer may be another such process, soft-iWARP in a Linux kernel, or an iWARP
// adapter. The protocol is in iwarp/core; here are the sockets.
//
//	ch, err := cmid.OpenChannel(iwarp.New())
//	ch, err := cmid.OpenChannel(iwarp.Config{CRC: true}.New())
//
// # Ownership
//
// An instance belongs to the loop it was opened on; its methods and upcalls happen there. It has
// no goroutine. Sockets, timers and queue pairs belong to their identifier; a socket that still
// owes or awaits a FIN when its identifier is destroyed belongs to the instance, for a bounded
// time and in bounded number. Memory regions are the device's, in Go's heap; nothing is pinned,
// and neither their keys nor their addresses say anything about the process to a peer: both are
// random. A message is read into one staging buffer per instance and copied to where it belongs,
// but for large segments, which are read in place.
//
// # Ordering
//
// Nothing is reported from inside Do, CreateQP or a posting. At the end of each callback, and of
// each turn, completions are notified first, then events, in the order in which they came about:
// an identifier's Disconnected comes behind the completions of everything that was received.
// Completions that a queue pair has before its Established was delivered wait for that. What is
// posted in one turn is written at the turn's end in one system call.
//
// # Errors
//
// Do returns errnos, wrapped. A connection that ends other than by both sides' FIN has a
// *core.Error in its event, with the Terminate that was sent or received. Nobody listening is
// Rejected with status -111, not an error of Connect, because Connect does not wait.
//
// # Limitations
//
// No immediate data and no atomics (RFC 7306). No markers, no datagrams, no port mapper (iwpm), no
// start in the middle of a TCP stream. Linux only; elsewhere Open fails with
// errors.ErrUnsupported. docs/iwarp.md lists what differs from the RFCs and from soft-iWARP, and
// why.
package iwarp
