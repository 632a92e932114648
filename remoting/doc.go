// Package remoting lets Proto.Actor's actors send to actors of other machines over RDMA. A PID of
// another node stands for the actor there: Send, Request, RequestFuture, Watch, Stop and
// PoisonPill work as with an actor of this one.
//
//	sys := actor.NewActorSystem()
//	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Security: security})
//	node, err := remoting.Start(rt, remoting.Config{
//		Name:   "10.0.0.1:7471",
//		Expose: remoting.Expose{Reach: []string{"greeter"}},
//	})
//	...
//	greeter := actor.NewPID("10.0.0.2:7471", "greeter")
//	res, err := remoting.Result(sys.Root.RequestFuture(greeter, &Hello{Who: "you"}, time.Second))
//
// Nodes that send each other something share one connection. The first message makes it, and it
// lasts as long as both nodes do. Messages are encoded by package codec: protobuf needs no line.
//
// # Ownership
//
// A message is encoded on its sender's goroutine, within Send: the sender may change it then. The
// receiver gets a new value. Start gives the actor system its address, Shutdown ends the node; the
// actor system and the runtime stay their owner's.
//
// Each peer has an actor on one of the runtime's loops. Codecs decode there, and Config.Allow is
// called there, so they must not block, nor may Config.NodeOf. Config.Admit, Config.Resolve, the
// Props of Config.Kinds, and subscribers of events and dead letters run off the loops; but failures
// that a sender meets within Send, because its message cannot be encoded or has no room, are
// published there, on its goroutine.
//
// # Ordering
//
// Messages of one sender to one target keep their order, as long as the connection lasts. When it
// ends, those that were sent and not consumed are lost: the next connection goes on with those that
// were not sent. No message is delivered twice. System messages (Watch, Stop, Terminated) overtake
// other messages.
//
// # Errors
//
// A message that cannot be sent is a dead letter, as one for a local actor that is not there: a
// future gets actor.ErrDeadLetter, another sender *actor.DeadLetterResponse, and without a sender a
// DeadLetterEvent is published. That is certain: the peer has not got it. Messages wait for a peer
// that is not connected, for Config.Patience; but requests of futures, and watches, fail with the
// first dial that fails. *NotSent has the reason.
//
// A future whose request was sent, and whose connection ended before the answer, gets *Unknown
// immediately: the peer may have carried the request out. One whose request the peer has refused
// gets *Refused. Both are values, because Proto.Actor's futures have no other errors; Result
// returns them as errors.
//
// A watcher gets Terminated when the actor there stops, immediately with NotFound if it is missing,
// and with AddressTerminated when the connection ends or cannot be made.
//
// # Isolation
//
// Config.Expose lists the operations that a peer may do here. It may also answer: send to the
// actors that have sent it something. Only the recipient of a future's request may answer it, once,
// even if another node has forwarded the request (Forward). Any other message of a peer is refused,
// and costs the message. Bytes that no node sends cost the connection.
//
// Config.Queue bounds the messages that wait for one peer, and one peer's queue delays no other
// peer.
//
// # Limitations
//
// Nodes prove who they are only if Config.ID has a Security and Config.NodeOf is set: otherwise see
// reconnect.Peers. Config.Admit decides which nodes can connect, again whenever Node.Readmit is
// called. The sender of a message is chosen by the peer, unless Config.OwnSenders is set. If a node
// forwards a request to a third node, and an actor has sent it, the third node's answer is refused,
// unless Config.Expose lets it reach the actor. If a future has sent it, the answer arrives; but
// the future times out if the third node refuses the request, or is lost. At other nodes the PID of
// a future has a RequestId. The messages of a connection that has ended may have been received or
// not; only futures are notified of each. Peers may name senders at other nodes, and an answer to
// such a sender makes a connection to its node. Within Config.Patience, peers may name as many
// unknown nodes as a quarter of Config.Peers, and those of one address as many as are left for all
// others. Config.Resolve can refuse names.
package remoting
