// Package slots transfers bytes by one-sided Writes through a ring of slots in each direction of a
// connection. A slot is a piece of memory of fixed size that one side fills here and the other side
// reads there. The package is for data that a program has to put into a buffer anyway, in pieces of
// some 64 KiB and more: files, frames, blocks. For messages use package actor.
//
//	c, err := slots.Dial(ctx, rt, "10.0.0.1:7471")
//	s, err := c.Reserve(ctx)          // waits for a free slot
//	n, err := file.Read(s.Bytes())    // fills it: the device sends from this memory
//	err = s.Send(n)                   // does not wait
//
//	r, err := c.Receive(ctx)          // waits for a slot that the peer has filled
//	_, err = file.Write(r.Bytes())
//	r.Release()                       // lets the peer fill it again
//
// Each side provides the memory that the peer writes to, and grants it. A slot is written to the
// peer's slot of the same number. Then the peer is notified: by the Write itself if the device and
// the peer support Writes with an immediate, otherwise by a small message after it. Notices about
// slots that were filled or released at about the same time share one message. In steady state a
// slot allocates nothing.
//
// # Ownership
//
// The program owns a Reserved from Reserve until Send or Release, and a Received from Receive until
// Release, on any goroutine. Their bytes stay valid until then, even if the connection ends: its
// memory is freed with the last slot. Until then it counts against rdma.Limits.Memory, and
// Runtime.Shutdown waits for it. A program that never releases a slot keeps that memory forever.
// Releasing a slot twice is a bug, and panics. A Conn must be closed even if its connection has
// ended.
//
// A connection has an actor on its loop and no goroutine. Blocking methods may be called on any
// goroutine except a loop's (an actor's Receive under OnLoop). On a loop's goroutine they return
// eventloop.ErrOnLoop, after the loop has been blocked for a second.
//
// # Ordering
//
// Slots are received in the order in which they were sent, followed by the end. They may be
// released in any order. Slots sent by several goroutines have the order of the calls of Send.
//
// # Flow control
//
// A side that has filled all slots waits in Reserve until the peer has released some. So the memory
// of a connection is bounded: twice Config.Slots times Config.Size bytes on each side, and messages
// of a few bytes. Released slots are returned to the peer in batches of a quarter of the slots, or
// immediately if the peer has at most that many free slots.
//
// # Errors
//
// The end of a connection is reported once, to all waiting and all later calls: io.EOF from Receive
// when the peer has called End or Close; a *LostError (ECONNRESET) when the connection has ended
// otherwise; a *ProtocolError (EPROTO) when the peer violates the protocol: it names a slot that
// does not exist, fills one that was not released, reports more bytes than a slot has, or releases
// a slot it does not have. A violation ends that connection only. Slots that arrived before the end
// can be received first. ErrClosed and ErrEnded result from this side's own calls.
//
// A Listener whose device is reset listens again. If it cannot for five minutes, Accept returns a
// *LostError with the cause, such as *rdma.RemovedError (ENODEV).
//
// # Security
//
// One-sided operations are not protected (Security.AllowOneSided): on a secured connection Dial
// fails with rdma.ErrSecured unless AllowOneSided contains rdma.RemoteWrite. If the peer ends the
// connection for that reason before Dial has found out, Dial fails with a *LostError. The peer has
// the key, so it may write to the slots at any time, even to one that a program is reading. A
// program that reads something twice, such as a length and then the data of that length, must copy
// it first.
//
// # Limitations
//
// A slot's bytes are sent when Send is called, not before. All slots of a direction have the same
// size. There are at most 128. The receiving side cannot choose where bytes are placed.
// rdma.Limits.SendQueue must be at least 2 * Config.Slots + 8.
package slots
