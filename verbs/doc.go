// Package verbs is the data path of rdmactor: memory regions, queue pairs, work requests and
// completions, in the terms of libibverbs. Every kind of device implements its interfaces
// [Device], [QP], [CQ] and [SRQ].
//
// # Ownership
//
// Every object here belongs to the event loop of the identifier that it serves. Its methods may be
// called only on that loop's goroutine. A posted buffer belongs to the device until its completion
// has been polled. Work requests are copied when they are posted.
//
// A Write has no completion at its target, except for one with immediate data, which uses up a
// receive. So memory that a peer may write (RemoteWrite) can change at any time. Access a peer's
// data only after you have received a Send that the peer posted after the Write, or the Write's own
// immediate data. Do not wait for a byte to change: that is a data race in Go's memory model, and
// on most devices the bytes of a Write arrive in no particular order. From the moment when the peer
// may know the key until that receive, do not access the region. A peer's Read has no completion on
// this side either. Keep the bytes unchanged until the peer reports, in a Send, that it has read
// them.
//
// # Ordering
//
// The work requests of one queue complete in posting order. When a receive completes, the message
// is in its buffer, and so is the data of every Write that the peer posted before the message. A
// Read sees the data of the Writes that were posted before it. Sends and Writes may overtake Reads
// that were posted before them, unless they are posted with Fence. Their completions never overtake
// those of the Reads.
//
// # Errors
//
// Calls return errors that wrap unix errnos (errors.Is finds them). A failure after the call is
// reported in a [WC] with a [Status]. When a queue pair ends, every outstanding work request
// completes once with [StatusFlushed]. A work request that is posted afterwards may get no
// completion.
//
// # Limitations
//
// Queue pairs are reliable and connected. Datagrams and atomic operations exist on devices that
// have them. Memory comes from [Device.Alloc]. Only devices inside the process can register a
// caller's slice ([Registrar]). A datagram's receive buffer begins with [GRHLen] bytes for the
// routing header.
package verbs
