// Package rdmanet provides byte streams over connections: a net.Listener and a net.Conn for
// programs that do not know RDMA, over any device. net/http, crypto/tls and gRPC run on it
// unchanged:
//
//	l, err := rdmanet.Listen(ctx, rt, "10.0.0.1:7471")
//	err = http.Serve(l, handler)
//
//	d := rdmanet.NewDialer(rt)
//	client := &http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
//	conn, err := grpc.NewClient("passthrough:///10.0.0.1:7471", grpc.WithContextDialer(d.Dial), ...)
//
// On the wire a stream is a sequence of package actor's messages (docs/wire.md). A message with
// bytes is the next piece of the stream. An empty one is the FIN: it ends that half of the stream,
// and nothing follows it. The private data of the request and of the reply begins with "rdmanet"
// and a byte with the version, 1. The bytes after that belong to later versions, and the lower
// version counts. A request without this prefix is rejected, with a reason as text.
//
// # Ownership
//
// A connection has an actor on its loop and no goroutine. Read, Write and similar methods run on
// the caller's goroutine; they wake the loop, or the loop wakes them, once for each burst. A slice
// is the caller's again when the call returns. A Conn must be closed even if its connection has
// ended: until then it keeps unread bytes. The program owns the Runtime. Its Shutdown ends every
// stream, and waits for closed ones that linger. Methods may be called on any goroutine except a
// loop's (an actor's Receive under OnLoop), because they would wait for that loop. On a loop's
// goroutine blocking methods return eventloop.ErrOnLoop: Read, Write and Accept after the loop has
// been blocked for a second, the others immediately.
//
// # Ordering
//
// Bytes are read in the order in which they were written, and the FIN after them. If the connection
// ends without a FIN, bytes that have arrived can be read before the error. Concurrent calls of
// Read are served one after the other, and so are those of Write, which keep their bytes together.
//
// # Close
//
// A stream ends as one of TCP's does, so that programs written for TCP work.
//
//   - Close does not block. Written bytes are still sent, and then a FIN. The connection lingers
//     until the peer's application has taken both, for 30 s at most (Config.Linger,
//     Conn.SetLinger). Runtime.Shutdown waits for it.
//   - A side that has closed no longer reads. So bytes of the peer's that were not read when Close
//     was called, or that arrive later, reset the connection, whatever else waits. If the FIN has
//     arrived at the peer, its Write then returns EPIPE; otherwise its Write and Read return
//     ECONNRESET. The peer can first read the bytes that have arrived. So no peer goes on writing
//     to a side that has closed. As with TCP, a side that must be sure that its last bytes arrive
//     has to read to the peer's FIN before it calls Close.
//   - SetLinger(0) makes Close reset immediately, without a FIN.
//   - CloseWrite ends one half. The other can still be read, without a time limit. After CloseRead
//     alone, the peer's bytes are dropped. After CloseRead and CloseWrite they reset the
//     connection, as after Close.
//
// # Errors
//
// Errors are *net.OpError, except io.EOF, which always means the peer's FIN. errors.Is finds
// net.ErrClosed (closed on this side), os.ErrDeadlineExceeded (Timeout is true), or otherwise an
// errno: ECONNRESET when the connection has ended without a FIN, which a killed peer does not send;
// EPIPE for a Write after the peer's Close or this side's CloseWrite; ECONNREFUSED, ETIMEDOUT,
// ECANCELED and the device's errors from Dial; EADDRNOTAVAIL or EADDRINUSE from Listen; EPROTO for
// a peer with another protocol. The cause is in the text, and errors.As finds the event that
// reported it: an end by this side's own Shutdown is ECONNRESET with rdma.ErrShutdown.
//
// A reset of its device does not end a Listener: it listens again when the device returns. Accept
// returns ENODEV if it cannot for five minutes, and after the Runtime's Shutdown.
//
// # Limitations
//
// Addresses are *net.TCPAddr, also on devices without TCP: they are those of the port space
// RDMA_PS_TCP. There is no SyscallConn, no file descriptor, and no keep-alive except the device's.
// A piece is at most 64 KiB less 8 bytes. If the peer's application does not read, Write blocks
// when the peer has some 2.5 MiB (Config.MaxMessage), or fewer bytes in 80 small pieces. A program
// that exits right after Close may lose the bytes not yet sent: call Runtime.Shutdown, which waits
// for them. Limits.SendQueue must be at least 65. Streams are secured if the Runtime's connections
// are (Config.Security); Conn.Identity returns the peer's identity. Otherwise nothing is encrypted
// or authenticated: use crypto/tls, as over TCP. It works over secured connections, too.
package rdmanet
