// Package slots moves bytes by one-sided Writes, through a ring of slots in each direction of a
// connection: memory of a fixed size, which one side fills here and there the other one reads it. It
// is for bytes that a program has to put somewhere anyway, in pieces of some 64 KiB and more: files,
// frames, blocks. Messages are what package actor has.
//
//	c, err := slots.Dial(ctx, rt, "10.0.0.1:7471", slots.Config{})
//	s, err := c.Reserve(ctx)          // waits for a slot that is free
//	n, err := file.Read(s.Bytes())    // fills it: it is the memory that the device sends from
//	err = s.Send(n)                   // does not wait
//
//	r, err := c.Receive(ctx)          // waits for a slot that the peer has filled
//	_, err = file.Write(r.Bytes())
//	r.Release()                       // and the peer may fill it again
//
// Each side has the memory for what the peer writes, and grants it. A slot is written to the peer's
// of the same number. Then the peer is notified: by the Write itself where device and peer have
// Writes with an immediate, else by a small message behind it. Messages about slots that were
// filled or released at about the same time are one message. In steady state a slot allocates
// nothing.
//
// # Ownership
//
// A Reserved is the program's from Reserve until Send or Release, a Received from Receive until
// Release, on any goroutine. Their bytes stay where they are until then, also when the connection
// ends: its memory is given back with the last slot. It counts against rdma.Limits.Memory so long,
// and Runtime.Shutdown waits for it. A program that never gives a slot back keeps that memory for
// ever. To give a slot back twice is a bug, and panics. A Conn must be closed, also when its
// connection has ended.
//
// A connection has an actor on its loop and no goroutine. Methods that wait are for any goroutine
// but a loop's (an actor's Receive under OnLoop); there they return eventloop.ErrOnLoop, after the
// loop has stood still for a second.
//
// # Ordering
//
// Slots are received in the order in which they were sent, and the end behind them. They may be
// released in any order. Slots that several goroutines send have the order of their Sends.
//
// # Flow control
//
// A side that has filled all slots waits in Reserve until the peer has released some. So what a
// connection takes is bounded: twice Config.Slots times Config.Size bytes on each side, and
// messages of a few bytes. What a program releases goes back to the peer in batches of a quarter of
// the slots, or at once if the peer has no more than that.
//
// # Errors
//
// The end is reported once, to all who wait and to who comes later: io.EOF from Receive when the
// peer has called End or Close; a *LostError (ECONNRESET) when the connection has ended otherwise;
// a *ProtocolError (EPROTO) when the peer does what it must not: name a slot that there is not, fill
// one that was not released, say more bytes than a slot has, release what it does not have. Such a
// peer loses its connection, and nothing else happens. What has come before the end can be received
// first. ErrClosed and ErrEnded are this side's own doing.
//
// A Listener whose device is reset listens again. If it cannot for five minutes, Accept returns a
// *LostError with the cause, such as *rdma.RemovedError (ENODEV).
//
// # Security
//
// One-sided operations are not protected (Security.AllowOneSided): on a secured connection Dial
// fails with rdma.ErrSecured, unless that allows rdma.RemoteWrite. If the peer ends the connection
// for that reason before Dial has found out, Dial fails with a *LostError. The peer may write to
// the slots at any time, also to one that a program is reading, because it has the key. So a
// program that looks twice at something, as at a length and then at what the length is of, copies
// it first.
//
// # Limitations
//
// A slot's bytes are sent when Send is called, not before. Slots of a direction all have one size.
// There are at most 128. The receiving side cannot choose where bytes go. rdma.Limits.SendQueue has
// to be at least twice Config.Slots and 8 more.
package slots
