// Package actor makes RDMA connections that are actors: every rdma_cm_id, which is one end of a
// connection or a listener, is an actor of Proto.Actor (github.com/asynkron/protoactor-go). The
// package is imported as rdma:
//
//	import rdma "github.com/rdmactor/rdmactor/actor"
//
// [Runtime.CreateID] returns the PID of a new identifier. Commands are messages to it ([BindAddr],
// [Listen], [Connect], [NewSend] ...), named after librdmacm's calls; events are messages from it
// to its owner, named after librdmacm's events, with the PID as their Sender. [Dial], [Serve],
// [Close], [Handover] and [Send] have no counterpart in librdmacm.
//
// # Ownership
//
// An identifier runs on one of the runtime's loops, as a child of the runtime's guardian. It runs
// on its owner's loop if the owner is an OnLoop actor; otherwise, and with IDConfig.Handler, on the
// loop with the fewest identifiers ("Several loops" in docs/design-devices.md). The end of its
// creator or of its listener does not affect it. When its owner stops, it is destroyed, also if the
// owner panics in *actor.Stopped.
//
// A command belongs to the identifier until it was answered, a [Send] permanently. Commands are
// pointers; one that is sent by value is copied. A [Received] belongs to the owner until Receive
// returns, unless it calls [Received.Retain]; the type's comment has all rules.
//
// The man pages require an application to answer a disconnect, and to destroy the identifier after
// DeviceRemoval, Disconnected, Rejected, Unreachable and ConnectError. The identifier does both
// automatically, unless it is [IDConfig.Manual]. The state machine decides when (docs/states.md). A
// [NeighbourChanged], for example, ends nothing.
//
// A [Memory] belongs to its connection. actor/README.md ("Remote memory") defines when an
// application may touch memory that a [Read], a [Write] or the peer uses.
//
// # Ordering
//
// An owner gets everything from an identifier in one FIFO: answers; the request or Established;
// every Received in the order in which it was sent; the event that ends the connection, once, with
// the cause that was found first; and last, always and exactly once, [Closed] with the reason. Only
// actor.Terminated may overtake any of it. Answers to another actor than the owner have no order
// among the owner's messages. Established, Disconnected and DeviceRemoval reach the owner even
// where they also answer another actor.
//
// Messages of one sender to an identifier keep their order, however many wait there. Messages that
// precede a Close go to the peer before the close, and a cancel cannot overtake its command. Reads
// and Writes keep their order among the messages to the peer, but overtake those messages that wait
// for the peer's credits.
//
// # Errors
//
// Each command is answered exactly once: to its Sender, or to the owner if it has none. So an owner
// may send its commands by ctx.Send or ctx.Request. Every answer that reports a failure is a
// [Failure], in which errors.Is finds the errno. Three failures come from commands that were not
// carried out at all:
//
//   - The identifier is being destroyed: [CommandFailed] (ENOENT).
//   - The identifier is gone: *actor.DeadLetterResponse.
//   - The message is not a command, or is a nil pointer: CommandFailed (EINVAL).
//
// Every phase has a deadline ([Timeouts]). A phase that exceeds it, or a context that is cancelled,
// costs the identifier, because destroying is the device's only way to cancel. A ResolveAddr or
// ResolveRoute that timed out in the device may be repeated.
//
// A queue pair that fails ends its connection. Disconnected and Closed then have a [QueuePairError]
// with the first work request that completed with an error: a message, a receive, or one of this
// package's messages about credits.
//
// # Misuse
//
// A zero [Send], [Memory] or [Received] is treated like a released one: it has no bytes, cannot be
// sent, and operations on it fail with EINVAL. A function that is given a nil pointer, or a nil
// command, returns an error with EINVAL or answers with one, if it can; else it panics, in the
// caller, with a sentence that begins with "rdma: ".
//
// # Panics
//
// The loss when user code panics depends on whose code it is:
//
//   - An owner's: nothing of the identifier. The owner's supervisor decides. An owner that fails
//     when it is asked to stop, or is restarted more than ten times in 10 s without having received
//     a message, is stopped without its code.
//   - A listener's Route, Place, Authorize or Handler: the request, which is rejected.
//   - A [Call]'s Fn: the identifier for which it was called. The command is answered with a
//     [PanicError], then Closed comes.
//   - A [Send]'s Renew: the connection, with the PanicError as its reason. The waiting Sends are
//     answered.
//   - An [Observer]'s, or that of a subscriber of the ActorSystem's events or dead letters: nothing.
//     The event that it was notified of is handled nevertheless.
//
// User code that calls runtime.Goexit on a loop, as testing's FailNow does, ends that loop. Its
// identifiers end with an [eventloop.GoexitError], of which Observers are not notified. Its OnLoop
// actors receive what was sent to them until then, and nothing more. Other loops go on. Shutdown
// returns the error. An OffLoop actor that calls Goexit fails as by a panic.
//
// Failures of actors are published as Proto.Actor's actor.SupervisorEvent, those of loops go to
// eventloop.Config.OnPanic, and all others are published as [Panicked]. Any of them fails a test
// that uses package actortest.
//
// # Floods
//
// An identifier holds a bounded number of messages ([Limits].Mailbox), however many messages and
// senders there are. Every accepted message is carried out. A Send that finds no room, or no
// connection, costs only its answer, SendFailed. While such answers wait for the same OnLoop or
// OffLoop actor they are merged into one ([SendFailed].Sends).
//
// Commands have separate room behind the Sends: 1,024 may wait there, and 1,024 more may be in
// progress. A further one is answered with CommandFailed or AccessError, ErrQueueFull. If it found
// no room to wait, the answer lacks the identifier's state. DestroyID and Close wait for all
// earlier messages. A cancelled context, Stop and Shutdown do not.
//
// Except for refused Sends, each message has a separate answer. An actor that sends commands
// without end and never reads the answers fills its own mailbox.
//
// # Isolation
//
// No peer can end or starve another peer's connection, whatever it does or fails to do:
//
//   - On the embedded device a message for which there is no memory waits at its sender, because
//     its connection is not read any further.
//   - A connection whose owner holds none of its messages may always receive the next one. Half of
//     the receive buffers are reserved for that.
//   - A connection whose owner holds some may receive more, as long as it holds no more than is left
//     for all others. Then it waits until some are released.
//   - Small messages are copied out of large buffers when a quarter of these is in use.
//   - A peer without credits (raw or foreign) may have IDConfig.Credits messages in flight.
//   - The kernel's devices refuse a connection if there is no memory for its receives.
//
// docs/design-fairness.md has the rules and every bound.
//
// What a peer or an actor can cause to be logged is limited in number, and a slow logger stops no
// loop: see [Runtime.Logger], and [Config].Logger for Proto.Actor's own lines.
//
// # Limitations
//
// Owners are actors of the runtime's ActorSystem. Any other is refused (ErrRemoteOwner), because
// events are values of this process. Owners that are neither [Runtime.OnLoop] nor [Runtime.OffLoop]
// actors get copies of messages, and exert no back-pressure. A request is received on its
// listener's loop, and may be handed to another loop from there. Datagram identifiers have no data
// path. A Received must not be used after Shutdown.
//
// docs/wire.md describes the wire protocol, docs/design-memory.md the copies of a message.
package actor
