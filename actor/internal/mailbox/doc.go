// Package mailbox runs Proto.Actor actors on event loops. It knows nothing of RDMA: Config
// supplies the knowledge about an actor's messages that it needs.
//
// A Mailbox is the actor's queue, in lanes. An Executor is where the actor runs: a Loop, which is
// one goroutine for all its actors and for the devices that send them events, or Goroutines, where
// an actor may block. The Registry of an ActorSystem finds the mailbox behind a PID, so that an
// event reaches an actor on the same loop within a function call.
//
//	sender ──PostUserMessage──▶ ┌ lifecycle ┐
//	                            │ event     │ ──Run, a bounded number at a time──▶ Receive
//	                            │ control   │                                        ▲
//	                            └ data      ┘                                        │
//	device, on the actor's loop ────────────Deliver: directly, if the actor is idle──┘
//
// # Lanes
//
// Lifecycle (Proto.Actor's system messages), Event (a device's reports), Control (commands that
// end an actor from outside), Data (everything else). A lane is served when those before it are
// empty, also in the middle of a turn. A turn is eventloop.RunBudget messages on a loop and 300 on
// goroutines; then others have theirs.
//
// # Ownership
//
// Any goroutine may post. Everything else about a mailbox belongs to its consumer: the loop's
// goroutine, or the one goroutine that runs it at that time. Deliver and DeliverOwned are for the
// actor's own loop. A message that is Retained has one reference for each place where it is queued
// or received; the mailbox releases it when Receive has returned, panicked or exited, or when the
// message was answered. A Carrier is the same for a message that knows nothing of it.
//
// # Ordering
//
// A lane is FIFO, so one sender's messages of one lane keep their order, also those that a full
// mailbox admits. Deliver comes after the lifecycle messages and events that wait, and before
// control and data. An actor is never entered twice: a message that is delivered in the middle of
// its Receive waits in the event lane. Nothing is received before Started.
//
// # Errors
//
// A message is received, or answered: by Policy.Leftover, without a Policy with Proto.Actor's dead
// letter. That holds for messages that wait when the actor stops, for those after a loop's
// LastCalls, and for those that an ended or abandoned loop leaves (BuryAll). Its actors can be
// stopped even then. Policy.Overflow gets messages without room, on the sender's goroutine. A nil
// message is a dead letter. A panic in Receive is the supervisor's; it costs that message only. A
// runtime.Goexit is the same off the loops (ErrGoexit); on a Loop it ends the event loop. An actor
// that fails as it stops, or that is restarted again and again and receives nothing, is ended
// without its code, as Proto.Actor would end it: else it would never end. Supervisors and
// subscribers of dead letters are user code, too: if one panics, that is reported (Loop.Escaped),
// and costs nothing else.
//
// # Limitations
//
// Lanes have no shares: endless events keep an actor from its commands, so their poster is
// trusted. Only the data lane is bounded, and only with Config.Limit. A Laned message is Event or
// Control, and has no references. An actor that blocks on a Loop stops that loop; the event loop's
// watchdog names it (LoopName). MessageBatch costs as much as its elements.
package mailbox
