// Package actor makes every rdma_cm_id an actor of Proto.Actor. It is imported as rdma:
//
//	import rdma "github.com/rdmactor/rdmactor/actor"
//
// [Runtime.CreateID] gives the PID of a new identifier. Commands are messages to it ([BindAddr],
// [Listen], [Connect], [NewSend] ...), named after librdmacm's calls; events are messages from it
// to its owner, named after librdmacm's events, with the PID as their Sender. [Dial], [Serve],
// [Close], [Handover] and [Send] are ours.
//
// # Ownership
//
// An identifier lives on one of the runtime's loops, under the runtime's guardian: neither its
// creator nor its listener takes it along. Which loop, docs/design.md says ("Several loops"): the
// owner's, if that is OnLoop, else, and with IDConfig.Handler, the one that has fewest. Its owner
// does: when that actor stops, the identifier is destroyed. Commands are pointers and belong to the
// identifier until they were answered, a [Send] for good. A [Received] is the owner's until Receive
// returns, or, after Retain, until Release, and that of the [Runtime.OnLoop] and [Runtime.OffLoop]
// actors it forwards it to; others get a Clone. Then the peer gets the credit back. With the build
// tag rdmadebug, and under the race detector, memory that was given back is overwritten. What the
// man pages oblige the application to (answer a disconnect, destroy after DeviceRemoval,
// Disconnected, Rejected, Unreachable, ConnectError) is done, unless [Manual].
//
// A [Memory] is its connection's. When an application may touch what a [Read], a [Write] or its
// peer uses says docs/design.md ("Remote memory").
//
// # Ordering
//
// From an identifier to its owner there is one FIFO: answers, the request or Established, every
// Received in the order it was sent, the end, once, with the cause that was found first, and always
// last, exactly once, [Closed] with the reason. actor.Terminated may overtake all of it. Into an
// identifier messages of one sender keep their order, however much waits there: what was sent
// before a Close is sent before it, and a cancel is behind its command; so do Reads and Writes
// among the messages to the peer, but that they overtake those which wait for its credits. An
// answer to somebody else than the owner is ordered with nothing else of the owner's; of
// Established, Disconnected and DeviceRemoval the owner is told in any case.
//
// # Errors
//
// A queue pair that fails ends its connection: Disconnected and Closed tell a [QueuePairError] with
// the first work request that has completed with an error, whether it was a message, a count of
// ours or a receive.
//
// Each command is answered exactly once: to its Sender, else to the owner. All failing answers are
// a [Failure]; errors.Is finds the errno in it. A command that finds its identifier on its way out
// is answered with [CommandFailed] (ENOENT), one to the PID of a dead identifier with
// *actor.DeadLetterResponse. What is no command, or a command by value, is CommandFailed (EINVAL)
// with what was meant. Every phase has a deadline ([Timeouts]), which costs the identifier, as
// a cancelled context does: the device's only cancel is destroy. A ResolveAddr or ResolveRoute that
// timed out in the device may be asked again.
//
// A command that is a nil pointer is CommandFailed (EINVAL), too, and does nothing. User code that
// does not return, by a panic or by runtime.Goexit, is its own actor's failure: an owner's is its
// supervisor's business and costs no identifier; a [Call]'s Fn, or an [Observer], costs the
// identifier it was called for, whose command is answered with a [PanicError] before Closed; a
// [Send]'s Renew costs the connection, whose end says so, and what waits there is answered. A loop
// goes on on another goroutine after a Goexit; what was in the middle of telling that actor
// something is broken off. On the embedded device that may be the input of a connection of the
// loop, which ends then (EIO); Shutdown may name what is left of it. It is a bug to mend, not a way
// to fail. Who wants to hear of all of them: actors' failures are Proto.Actor's
// actor.SupervisorEvent, loops' eventloop.Config.OnPanic, and all others [Panicked]. A test in
// package actortest fails.
//
// # Floods
//
// Whatever is sent to an identifier, and by however many, it holds a bounded number of messages
// ([Limits].Mailbox), and what was admitted goes on its way. A Send that finds no room, or no
// connection, costs nothing but its answer, SendFailed, and those answers become one while they
// wait for the same OnLoop or OffLoop actor ([SendFailed].Sends). A command has room behind the
// Sends; the 1,025th that waits there is answered with CommandFailed or AccessError, ErrQueueFull,
// without the identifier's state, and so is one that finds 1,024 that are not answered yet. A
// cancelled context, Stop and Shutdown do not wait for what is queued; DestroyID and Close wait for
// what was sent before. Answers other than those to refused Sends are one for each message, in the
// mailbox of who has asked: who asks without end and does not listen fills its own.
//
// # Isolation
//
// What one peer does, or leaves undone, never ends or starves another peer's connection. On the
// embedded device a message that finds no memory waits at its sender, for that connection is not
// read on. A connection whose owner holds none of its messages may always receive the next: half of
// the receive buffers are for such. One whose owner holds some may receive more while these are no
// more than what is left for all others; then it waits until some are released. Small messages are
// copied out of large buffers when a quarter is in use. A peer without credits (raw, or foreign)
// has as many messages under way as it has IDConfig.Credits. The kernel's devices refuse a
// connection whose receives they cannot hold. docs/design.md has the law, and what each bound is.
//
// What a peer, or an actor, can have logged is limited in number, and a slow logger stops no loop:
// [Runtime.Logger], and for Proto.Actor's own lines [Config].Logger.
//
// # Limitations
//
// Owners are actors of the runtime's ActorSystem: an actor elsewhere is refused (ErrRemoteOwner),
// for events are values of this process. Owners that are neither [Runtime.OnLoop] nor
// [Runtime.OffLoop] actors get copies of messages and exert no back-pressure. Requests are accepted
// on their listener's loop, whatever loop they go to. Datagram identifiers have no data path. A
// Received must not be used after Shutdown. docs/wire.md describes what is on the wire,
// docs/design.md what a message costs.
package actor
