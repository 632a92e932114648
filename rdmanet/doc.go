// Package rdmanet makes byte streams of connections: a net.Listener and a net.Conn for programs
// that know nothing of RDMA, over any device. net/http, crypto/tls and gRPC run on it as they are:
//
//	l, err := rdmanet.Listen(rt, "10.0.0.1:7471", rdmanet.Config{})
//	err = http.Serve(l, handler)
//
//	d := rdmanet.NewDialer(rt, rdmanet.Config{})
//	client := &http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
//	conn, err := grpc.NewClient("passthrough:///10.0.0.1:7471", grpc.WithContextDialer(d.Dial), ...)
//
// On the wire a stream is messages of package actor (docs/wire.md). A message with bytes is the
// next piece of the stream. An empty one is the FIN: it ends that half of the stream, and nothing
// follows it. The private data of the request and of the reply begins with "rdmanet" and a byte
// with the version, 1; what follows belongs to later versions, and the lower version counts. A
// request without that is rejected, with a reason in words.
//
// # Ownership
//
// A connection has an actor on its loop and no goroutine. Read, Write and the like run on the
// caller's goroutine; they wake the loop, or the loop wakes them, once for each burst. A slice is
// the caller's again when the call returns. A Conn must be closed, also when its connection has
// ended: until then it keeps what was not read. The Runtime is the program's. Its Shutdown ends
// every stream, and waits for those that were closed and linger. Methods are for any goroutine but
// a loop's (an actor's Receive under OnLoop), because they would wait for that loop. There, methods
// that wait return eventloop.ErrOnLoop: Read, Write and Accept after the loop has stood still for a
// second, the others at once.
//
// # Ordering
//
// Bytes are read in the order in which they were written, and the FIN after them. If the connection
// ends without a FIN, what had arrived can be read before the error. Calls of Read that run at the
// same time are served one after the other, and so are calls of Write, each one's bytes together.
//
// # Close
//
// A stream ends as one of TCP's does, so that programs written for TCP find what they rely on.
//
//   - Close does not block. What was written is still sent, and then a FIN. Until the peer's
//     application has taken both the connection lingers, for 30 s at most (Config.Linger,
//     Conn.SetLinger). Runtime.Shutdown waits for it.
//   - A side that has closed reads nothing more. So bytes of the peer's that were not read when
//     Close was called, or that come later, reset the connection, whatever else waits. If the FIN
//     has arrived at the peer, its Write then returns EPIPE; otherwise its Write and Read return
//     ECONNRESET. What has arrived there can be read first. So no peer goes on writing to a side
//     that has closed. As with TCP, a side that must be sure that its last bytes arrive has to
//     read to the peer's FIN before it calls Close.
//   - SetLinger(0) has Close reset at once, without a FIN.
//   - CloseWrite ends one half. The other one can be read for as long as it takes. After CloseRead
//     alone, what comes from the peer is dropped. After CloseRead and CloseWrite it resets the
//     connection, as after Close.
//
// # Errors
//
// Errors are *net.OpError, but for io.EOF, which is the peer's FIN and nothing else. errors.Is
// finds net.ErrClosed (closed on this side), os.ErrDeadlineExceeded (Timeout is true), and else an
// errno: ECONNRESET when the connection has ended without a FIN, which a peer that was killed does
// not send; EPIPE for a Write behind the peer's Close or one's own CloseWrite; ECONNREFUSED,
// ETIMEDOUT, ECANCELED and what the device says from Dial; EADDRNOTAVAIL or EADDRINUSE from Listen;
// EPROTO for a peer that speaks something else. The cause is in the text, and errors.As finds the
// event that reported it: an end by this side's own Shutdown is ECONNRESET with rdma.ErrShutdown.
//
// A reset of its device does not end a Listener: it listens again when the device is back. Accept
// returns ENODEV if it cannot for five minutes, and after the Runtime's Shutdown.
//
// # Limitations
//
// There is no SyscallConn, no file descriptor, and no keep-alive but the device's. A piece is at
// most 64 KiB less 8 bytes. If the peer's application does not read, Write blocks when the peer
// has some 2.5 MiB (Config.MaxMessage), or fewer bytes in 80 small pieces. If a program exits
// right after Close, nothing waits until its bytes were sent: call Runtime.Shutdown, which does.
// Limits.SendQueue has to be 65 at least. Streams are secured if the Runtime's connections are
// (Config.Security); Conn.Identity says who the peer is. Without, nothing is encrypted or
// authenticated: use crypto/tls, as over TCP. That is possible over secured ones, too.
package rdmanet
