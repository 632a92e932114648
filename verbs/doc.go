// Package verbs is the bytes' side of rdmactor: memory regions, queue pairs, work requests and
// completions, in the verbs' own terms, and the seam ([Device], [QP], [CQ], [SRQ]) that every kind
// of device implements.
//
// # Ownership
//
// Everything here belongs to the loop of the identifier it serves and is called on that loop's
// goroutine only. A posted buffer belongs to the device until its completion was polled. Work
// requests are copied when posted.
//
// Memory that a peer may write (RemoteWrite) changes under the application's eyes: a Write has no
// completion at its target. Touch what a peer wrote only after the receive of a Send that it
// posted behind the Write. Do not wait for a byte to change: it is a data race in Go's memory
// model, and on most devices nothing orders the bytes of a Write. From the moment the peer may
// know the key until that receive, leave the region alone. A peer's Read has no completion here
// either: keep the bytes until the peer says, in a Send, that it has them.
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
// Calls return unix errnos (wrapped, errors.Is finds them). What happens later is a [WC] with a
// [Status]; once a queue pair has ended every outstanding work request completes once with
// [StatusFlushed], and nothing posted afterwards is owed a completion.
//
// # Limitations
//
// Reliable connected queue pairs, and datagrams and atomic operations where the device has them.
// Memory comes from [Device.Alloc]; a caller's slice is registered by devices inside the process
// only ([Registrar]). A datagram's receive buffer begins with [GRHLen] bytes for the routing
// header.
package verbs
