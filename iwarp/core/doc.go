// Package core is one iWARP connection as a pure state machine: MPA set-up (RFC 5044, RFC 6581), then DDP (RFC 5041) and RDMAP
// (RFC 5040) with Send. Bytes and time go in; bytes, landing buffers and completions come out. It has no socket, no clock and no
// goroutine, so a test drives it with values.
//
// An owner with a socket does this after every call into a [Conn], and when the socket becomes writable:
//
//	for c.Pending() {
//		iov = c.Gather(iov[:0])        // or GatherFPDU, see there
//		n := writev(iov)               // stop at EAGAIN, InputEnd(now, err) at any other error
//		c.Advance(now, n)
//	}
//	shutdownWrite, closeNow := c.WantClose()
//	// closeNow: close the socket, forget c. shutdownWrite: shutdown(SHUT_WR), once; go on reading.
//	// arm a timer at c.Deadline, which calls c.Timeout
//
// # Ownership
//
// A Conn belongs to one goroutine. Upcalls come on it, from inside the call that caused them. The memory of a posted work request
// belongs to the Conn until its completion; the list and inline bytes of a send are copied by PostSend. What Input is given may be
// reused when it returns. What Gather returns is valid until the next Advance, Disconnect, Shutdown, Abort, Input, InputEnd or
// Timeout: gather, write and Advance in one go.
//
// # Ordering
//
// Completions of one queue come in posting order. A send completes when the socket took its last byte, which says nothing about
// the peer. A receive completes when the last segment of its message is placed and its CRC, if in use, was right. Messages are
// never interleaved. Disconnect overtakes sends that have not started; what the peer sent before it saw our FIN is still
// delivered. Closed is last.
//
// # Errors
//
// PostSend, PostRecv, Accept and Reject return errnos. Everything later is an [*Error] at Rejected or Closed: with a Terminate
// sent or received, or a socket error, or a timeout. A wrong frame ends its connection: the receive it hit completes with the
// matching status, every other work request with verbs.StatusFlushed, a Terminate in RFC 5040's form is queued where the protocol
// has one. A peer can make a Conn hold at most one MPA frame, one header and its own posted receives.
//
// # Limitations
//
// No remote memory: a Write or Read Request that is not empty is answered with "invalid STag", Send with Invalidate likewise.
// No markers: a peer that demands them is refused. No Terminate when the write side is already shut.
package core
