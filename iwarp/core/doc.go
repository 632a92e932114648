// Package core is one iWARP connection as a pure state machine: MPA set-up (RFC 5044, RFC 6581),
// then DDP (RFC 5041) and RDMAP (RFC 5040). Bytes and time go in; bytes, landing buffers and
// completions come out. It has no socket, no clock and no goroutine, so a test drives it with
// values.
//
// An owner with a socket does this after every call into a [Conn], and when the socket becomes
// writable:
//
//	for c.Pending() {
//		iov = c.Gather(iov[:0])
//		n := writev(iov)               // InputEnd(now, err) at any error but EAGAIN
//		c.Advance(now, n)              // 0 at EAGAIN; stop until the socket is writable
//	}
//	shutdownWrite, closeNow := c.WantClose()
//	// closeNow: close the socket, forget c. shutdownWrite: shutdown(SHUT_WR), once; go on reading.
//	// arm a timer at c.Deadline, which calls c.Timeout
//
// # Ownership
//
// A Conn belongs to one goroutine. Upcalls come on it, from inside the call that caused them. The
// memory of a posted work request belongs to the Conn until its completion; the list and inline
// bytes of a send are copied by PostSend. What Input is given may be reused when it returns. What
// Gather returns is valid until the next Advance, Disconnect, Shutdown, Abort, Input, InputEnd or
// Timeout: gather, write and Advance in one go.
//
// A region may be freed, and taken out of Regions, at any time: what a peer sends to it or asks of
// it from then on is refused, also in the middle of a message. What Gather has given of it may
// still be written.
//
// # Ordering
//
// Completions of one queue come in posting order. A Send or a Write completes when the socket took
// its last byte, which says nothing about the peer; a Read when its data is here. A Read waits
// while as many as the peer takes are outstanding (ORD), a fenced work request for every Read
// before it, and what is behind them waits too. A receive completes when the last segment of its
// message is placed and its CRC, if in use, was right. Messages are never interleaved; Read
// Responses and sends take turns. Disconnect overtakes sends that have not started, and waits for
// no Read; what the peer sent before it saw our FIN is still delivered. Closed is last.
//
// # Errors
//
// PostSend, PostRecv, Accept and Reject return errnos. Everything later is an [*Error] at Rejected
// or Closed: with a Terminate sent or received, or a socket error, or a timeout. A wrong frame
// ends its connection: the receive it hit completes with the matching status, every other work
// request with verbs.StatusFlushed, a Terminate in RFC 5040's form is queued where the protocol
// has one. A peer can make a Conn keep at most one MPA frame, one header, the receive that its
// message began to fill (for Config.MessageTimeout without a byte), and one small record for each
// Read it may have outstanding: next power of two of the IRD, and one.
//
// # Limitations
//
// No markers: a peer that demands them is refused. No Terminate when the write side is already
// shut. No immediate data, no atomics (RFC 7306).
package core
