// Package eventloop runs callbacks for ready file descriptors, due timers and queued work, all on one goroutine: everything about
// an RDMA identifier happens on its loop. A program that only wants to read a socket is served better by package net.
//
// A [Loop] is run by its own goroutine ([Loop.Start]), by the caller's ([Loop.Run]), or inside somebody else's loop ([Loop.FD] and
// [Loop.Turn]). A turn is: wait; tell the ready fds; fire the due timers; run queued work, posted functions and [Runnable]s alike, up
// to the turn's budget; run what was deferred to the turn's end. A turn that finds nothing to do costs one system call, and no turn
// allocates.
//
// # Ownership
//
// The loop's goroutine owns fds, timers, and whatever its callbacks keep there; none of that is
// locked. Only these are for any goroutine: [Loop.Post], [Loop.Schedule], [Loop.Stats],
// [Loop.OnLoop], [Loop.Name] and [Loop.Shutdown] (which is for any but the loop's). Before the loop
// runs, one goroutine may prepare it as if it were the loop's. Callbacks must not block: nothing
// else on the loop happens meanwhile. A watchdog names the one that does (Config.StallAfter),
// Config.CheckOwner finds callers on the wrong goroutine. A file descriptor stays its caller's.
//
// # Ordering
//
// Queued work runs in the order of the Post and Schedule calls. What a callback queues runs in the same turn, unless the turn's
// budget is used up; then fds and timers come first. Work that a callback was told about in a turn (an fd's event) is therefore done
// in that turn. Timers fire in the order of their times. Between fds there is no order. Deferred work runs last.
//
// # Waiting
//
// [Block] sleeps in the kernel when there is nothing to do: idle costs nothing, and a wake-up from another goroutine takes an eventfd
// write and a scheduler's wake-up, some 5 to 50 µs. [Spin] polls for a while after the last work, at the cost of one processor for
// that while, then blocks. [Busy] never blocks and takes one processor for ever. A polling loop that finds nothing yields to other
// goroutines every eighth time, and glances at the fd that was ready last, where its handler is a [Glancer], more often than it asks
// the kernel about all. A blocking loop yields only after [Loop.Handoff], a polling one then too. Wake-ups are coalesced: one write per
// sleep, none for work that is queued while the loop is awake or by the loop itself.
//
// # Errors
//
// What fails is an [*OpError] with the operation, the fd and an errno that errors.Is finds; [ErrClosed], [ErrOnLoop] and [ErrRunning]
// are errors of use. EINTR is retried. A callback that panics is reported to Config.OnPanic, and the loop goes on. A loop that cannot
// wait any more ends, logs why, and tells it to Shutdown. Shutdown that runs out of time names the callback that holds the loop.
//
// # Limitations
//
// epoll, so Linux, unless Config.Poller brings something else. Timers are up to a millisecond late, epoll_wait's resolution (an
// embedded loop's are not), and never early. The queue has no bound of its own. epoll cannot watch regular files (EPERM).
package eventloop
