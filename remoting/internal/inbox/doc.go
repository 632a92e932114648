// Package inbox hands the messages of one peer to local actors, within bounds: a slow, blocked or
// dead target costs bounded memory, and does not stop the others for longer than Config.Patience.
//
//	link ──Deliver──▶ line of the target ──▶ mailbox of an OnLoop or OffLoop actor
//	                  (waits while the target ──▶ Proto.Actor's default mailbox
//	                   has a Window to consume) ──▶ lane: a goroutine, for sends that may block
//
// # How consumption is noticed
//
// An OnLoop or OffLoop actor's mailbox reports it (rdma.Carrier). An actor with Proto.Actor's
// default mailbox gets a *actor.Touch behind each half of a Window, which Proto.Actor answers when
// Receive has returned; the answer is for a process of this package. Processes that may block or
// run foreign code when they are sent to (a bounded mailbox, a mailbox with middleware or with a
// special dispatcher, a router, an event stream, dead letters) are sent to by a separate goroutine,
// and have consumed a message when the send returns. Futures get theirs immediately. The first
// messages to an actor with a default mailbox take this way, too, a millisecond later: Proto.Actor
// may still spawn it, and a message sent to its mailbox before the spawn is complete keeps it from
// ever running.
//
// # Bounds
//
// A target has at most a Window of bytes that it has not consumed, or one message that is larger.
// Messages beyond that wait in its line. When Bytes of the peer's messages are not consumed, the
// inbox is full: it retains the RDMA messages that still come, so that the peer has no credits
// left, until a quarter is consumed; the caller must not decode their contents before (Full). A
// line whose target consumes nothing for Patience while the inbox is full is refused: the one with
// the most bytes first, until a quarter is free. A target that consumes something in that time,
// however little, keeps its messages. A line that was refused takes nothing more until its target
// consumes again, and has half a Window at most. Messages that were already passed to the target
// stay in its mailbox, and no longer count: a Window for each such target. Each message counts as
// its size and a constant.
//
// # Ownership
//
// An Inbox belongs to an OnLoop actor, and is used in its Receive. Messages do not refer to the
// bytes of the RDMA message that they came in: their receivers may keep them.
//
// # Ordering
//
// Messages for one target keep their order, whatever happens to it: also when another process takes
// its name. System messages keep theirs, and do not wait for user messages.
//
// # Errors
//
// A message to an unknown name becomes a dead letter, as in Proto.Actor. A refused message is
// reported to Config.Refuse, once: ErrSlow, ErrClosed, ErrNothing, or a *rdma.PanicError of the
// foreign code that it met. Messages that were passed to a target are not reported later.
//
// # Limitations
//
// An actor with a default mailbox sees the Touch in Receive, as it sees any other. If it panics at
// it, or a middleware swallows it, another follows. A message that an actor stashes or forwards
// counts as consumed. A peer that guesses a name which Proto.Actor is about to make, and sends to it
// within the microseconds of the spawn, keeps the actor from running. A future's continuation runs where its result is delivered, so PipeTo to an
// actor with a full bounded mailbox blocks the loop. A mailbox with priorities or of a foreign type
// is unbounded if it is itself.
package inbox
