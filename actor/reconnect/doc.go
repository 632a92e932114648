// Package reconnect keeps a connection to one address: an actor that connects again whenever the
// connection ends, and can report the fate of each message to its owner.
//
//	link := reconnect.Spawn(rt, ctx.Self(), reconnect.Config{Dial: rdma.Dial{Addr: "10.0.0.2:7471"}})
//	ctx.Send(link, rdma.NewSend([]byte("hello"))) // goes out when there is a connection
//
// The owner sends it *rdma.Send or, to learn the fate of the message, *Send. An owner on its loop
// may also post a message that is sent immediately or not at all (Up.Post). *rdma.Close, *Drain or
// *rdma.DestroyID end it, *Break ends a connection only. The owner gets *Up, *rdma.Received,
// *Settled, *Down, *Refused, *rdma.Writable, and last *Closed. Each attempt to connect is a
// generation, with a separate identifier. Every generation ends with Down, whether it has been Up
// or not.
//
// Nodes that connect to each other share one connection: see Peers. Messages of several types have
// their bytes and names from package codec: see the example of messages.
//
// # Ownership
//
// The actor runs on its owner's loop, if that is an OnLoop actor's, and dies with its owner. A
// message belongs to it as soon as it was sent. A [rdma.Received] belongs to the owner as if it
// came from the connection itself, also when its generation has ended since.
//
// # Ordering
//
// The owner gets everything in one FIFO. Everything between an Up and the next Down belongs to that
// generation: late events of an earlier identifier are dropped. Messages are sent in the order in
// which they were accepted, in every generation.
//
// # Errors
//
// Each accepted message ends as Delivered (the peer has consumed it), Unsent, or Unknown (it was
// sent, and the connection ended before the peer reported it as consumed). An Unsent message is
// sent again in the next generation, unless Config.FailFast is set. An Unknown one is never
// repeated, unless its Send was Idempotent. Config.Permanent decides which failures end it. Every
// refusal is a *Refused, in which errors.Is finds the errno.
//
// # Limitations
//
// The peer reports consumed messages when it returns credits, half a window at a time or along with
// its own messages (docs/wire.md). So the last few messages are settled only by an orderly end. On
// raw connections no message is ever known to be Delivered: a message that left is Unknown
// immediately, and not repeated. The messages in the mailbox of an actor that is stopped from
// outside get no fate. Without rdma.Security and PeersConfig.Proves nodes do not prove their
// identity: any machine that can reach the listener can pass for a node that is not connected,
// until that node connects from its own address (Peers).
package reconnect
