// Package verbs is the data path of rdmactor: memory regions, queue pairs, work requests and
// completions, in the terms of libibverbs. Every kind of device implements its interfaces
// [Device], [QP], [CQ] and [SRQ].
//
// # Ownership
//
// Everything here belongs to the loop of the identifier it serves and is called on that loop's
// goroutine only. A posted buffer belongs to the device until its completion was polled. Work
// requests are copied when posted.
//
// A Write has no completion at its target. So memory that a peer may write (RemoteWrite) can
// change at any time. Touch what a peer wrote only after the receive of a Send that the peer
// posted behind the Write. Do not wait for a byte to change: that is a data race in Go's memory
// model, and on most devices the bytes of a Write come in no particular order. From the moment
// when the peer may know the key until that receive, do not touch the region. A peer's Read has no
// completion on this side either: keep the bytes unchanged until the peer reports, in a Send, that
// it has them.
//
// # Ordering
//
// Completions of one queue come in posting order. A receive's completion says that the message's
// bytes are in its buffer, and those of every Write before it in theirs. A Read sees what Writes
// posted before it wrote. Sends and Writes overtake Reads posted before them, unless posted with
// Fence; their completions do not.
//
// # Errors
//
// Calls return unix errnos (wrapped, errors.Is finds them). What happens later is reported in a
// [WC] with a [Status]. When a queue pair has ended, every outstanding work request completes once
// with [StatusFlushed]. A work request that is posted afterwards may get no completion.
//
// # Limitations
//
// There are reliable connected queue pairs, and datagrams and atomic operations where the device
// has them. Memory comes from [Device.Alloc]. Only devices inside the process can register a
// caller's slice ([Registrar]). A datagram's receive buffer begins with [GRHLen] bytes for the
// routing header.
package verbs
