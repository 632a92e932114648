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
// # Parts
//
// A Conn has the state and decides when the connection ends. Each of its parts has one concern, and
// returns what is wrong to the Conn:
//
//   - setup: MPA's Request and Reply; pacing: the first FPDUs behind them;
//   - input and output: MPA's FPDUs, from and to the socket;
//   - stream: the RDMAP Stream, which is receives (DDP queue 0), sendQueue with its outboundReads,
//     inboundReads, the tagged message in progress, and access, the memory that all of them may use.
//
// # Ownership
//
// A Conn belongs to one goroutine. Upcalls come on it, from inside the call that caused them. The
// memory of a posted work request belongs to the Conn until its completion; the list and inline
// bytes of a send are copied by PostSend. The bytes passed to Input may be reused when it returns,
// unless a message waits (Waiting, Keep). The slices that Gather returns are valid until the next
// Advance, Disconnect, Abort, Input, Resume, InputEnd or Timeout: gather, write and Advance in one
// go.
//
// A region may be freed, and taken out of Regions, at any time. From then on a peer's access to it
// is refused, even in the middle of a message. Bytes of it that Gather has already returned may
// still be written.
//
// # Ordering
//
// Completions of one queue come in posting order. A Send or a Write completes when the socket has
// taken its last byte, which does not mean that the peer has it. A Read completes when its data has
// arrived. A Read waits while as many Reads as the peer serves (ORD) are outstanding. A fenced work
// request waits for every Read before it. Work requests behind either wait, too. A receive
// completes when the last segment of its message is placed and its CRC, if in use, was right.
// Messages are never interleaved; Read Responses and sends take turns. Disconnect flushes sends
// that have not started, and does not wait for Reads. Data that the peer sent before it saw this
// side's FIN is still delivered. Closed is the last upcall.
//
// # Errors
//
// PostSend, PostRecv, Accept and Reject return errnos. Everything later is an [*Error] at Rejected
// or Closed: a Terminate that was sent or received, a socket error, or a timeout.
//
// A wrong frame ends its connection. The receive that the frame was for completes with the
// matching status, every other work request with verbs.StatusFlushed. If the protocol has a
// Terminate for the error, it is queued in RFC 5040's form.
//
// The memory that a peer can make a Conn occupy is bounded: one MPA frame; one header; the receive
// that its message has begun to fill (for Config.MessageTimeout without a byte); and a small
// record for each Read that it may have outstanding, whose number is the IRD rounded up to a power
// of two, plus one.
//
// # Limitations
//
// No markers: a peer that demands them is refused. No Terminate when the write side is already
// shut. No immediate data, no atomics (RFC 7306).
package core
