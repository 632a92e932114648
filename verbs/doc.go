// Package verbs is the bytes' side of rdmactor: memory regions, queue pairs, work requests and completions, in the verbs' own
// terms, and the seam ([Device], [QP], [CQ], [SRQ]) that every kind of device implements.
//
// # Ownership
//
// Everything here belongs to the loop of the identifier it serves and is called on that loop's goroutine only. A posted buffer
// belongs to the device until its completion was polled. Work requests are copied when posted.
//
// # Ordering
//
// Completions of one queue come in posting order. A receive's completion says that the message's bytes are in its buffer.
//
// # Errors
//
// Calls return unix errnos (wrapped, errors.Is finds them). What happens later is a [WC] with a [Status]; once a queue pair has
// ended every outstanding work request completes once with [StatusFlushed], and nothing posted afterwards is owed a completion.
//
// # Limitations
//
// Reliable connected queue pairs only; no immediate data and no atomics, because not every device has them. Memory comes from
// [Device.Alloc]: a caller's slice is never registered.
package verbs
