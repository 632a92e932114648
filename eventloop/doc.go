// Package eventloop runs callbacks for ready file descriptors, due timers and queued work, all on
// one goroutine: everything about an RDMA identifier happens on its loop. A program that only
// wants to read a socket is served better by package net.
//
// A [Loop] is run by its own goroutine ([Loop.Start]), by the caller's ([Loop.Run]), or inside
// somebody else's loop ([Loop.FD] and [Loop.Turn]). A turn is: wait; call the handlers of the
// ready fds; fire the due timers; run queued work, posted functions and [Runnable]s alike, up to
// the turn's budget; run what was deferred to the turn's end. A turn that finds nothing to do
// costs one system call, and no turn allocates.
//
// # Ownership
//
// The loop's goroutine owns fds, timers, and whatever its callbacks keep there; none of that is
// locked. Only these are for any goroutine: [Loop.Post], [Loop.Schedule], [Loop.Stats],
// [Loop.OnLoop], [Loop.Name] and [Loop.Shutdown] (which is for any but the loop's). Before the loop
// runs, one goroutine may prepare it as if it were the loop's, and has finished when another one
// calls Shutdown. Callbacks must not block: nothing else on the loop happens meanwhile. A watchdog
// names the one that does (Config.StallAfter), Config.CheckOwner finds callers on the wrong
// goroutine.
//
// A file descriptor stays its caller's, who calls [Registration.Remove] first and closes it then.
// An embedded loop's goroutine is its host's between two Turns. The number that [Loop.FD] gives is
// the loop's, and somebody else's once the loop has ended.
//
// # Ordering
//
// Queued work runs in the order of the Post and Schedule calls. What a callback queues runs in the
// same turn, unless the turn's budget is used up; then fds and timers come first. So the work that
// follows from an fd's event is done in the event's turn. Timers fire in the order of their times.
// Between fds there is no order. Deferred work runs last.
//
// # Waiting
//
// [Block] sleeps in the kernel when there is nothing to do: idle costs nothing, and a wake-up from
// another goroutine takes an eventfd write and a scheduler's wake-up, some 5 to 50 µs. [Spin]
// polls for a while after the last work, at the cost of one processor for that while, then blocks.
// [Busy] never blocks and takes one processor for ever. A polling loop that finds nothing yields
// to other goroutines every eighth time, and glances at the fd that was ready last, where its
// handler is a [Glancer], more often than it asks the kernel about all. A blocking loop yields
// only after [Loop.Handoff], a polling one then too. Wake-ups are coalesced: one write per sleep,
// none for work that is queued while the loop is awake or by the loop itself.
//
// # Ending
//
// From [Loop.Shutdown] on, Post, Start, Run, Turn and FD find the loop closed ([ErrClosed]; the
// host's Turn ends it and returns that). Schedule is accepted until nothing is left to run: what
// it has accepted runs. The rest of the work runs where the loop ran. Where nobody ran it, it runs
// on a goroutine of its own, so that a callback that blocks cannot keep the caller of Shutdown
// beyond its context. A host that shuts down between two Turns runs it itself. A Shutdown that
// runs out of time names the callback that occupies the loop, which then ends without running the
// rest. A [*ShutdownError] with Undone reports that to whoever waits longer. The loop of a host
// that does not come back ends at once. After the end nothing on a loop has an effect, least of
// all on descriptors whose numbers are somebody else's by then.
//
// # Errors
//
// An operation fails with an [*OpError], which has the operation, the fd and an errno that
// errors.Is finds. [ErrClosed], [ErrOnLoop] and [ErrRunning] mean wrong use. EINTR is retried. A
// loop that cannot wait any more runs once what it has accepted, ends, logs why, and reports it to
// Shutdown.
//
// A callback that panics, or ends its goroutine (runtime.Goexit), is reported to Config.OnPanic,
// and the loop goes on, on another goroutine if it has to. A Goexit takes an embedded loop's host
// along: the loop then waits for a Turn on another goroutine, which becomes its own, or for a
// Shutdown. A panic in OnPanic is not recovered here. It ends the loop, and the process unless the
// caller of Run or Shutdown recovers it. The loop of a host that recovers it goes on. A Goexit in
// OnPanic ends the loop, too. OnStall and LoopName may do either: the watchdog goes on, and names
// the type.
//
// # Limitations
//
// epoll, so Linux, unless Config.Poller brings something else. Timers are up to a millisecond
// late, epoll_wait's resolution (an embedded loop's are not), and never early. The queue has no
// bound of its own. epoll cannot watch regular files (EPERM).
//
// epoll watches open files, not their numbers. A descriptor that is closed before Remove leaves
// epoll unless it has a duplicate: by dup(2), in a child process, or in a message to another
// process. Then the kernel goes on reporting it, to its handler, or to nobody once that is removed
// or the number is added again. No call takes it out, and while it is ready the loop does not
// sleep. The loop logs that once, with the number. It ends with the last duplicate, or with the
// loop.
package eventloop
