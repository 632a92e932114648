// Package eventloop runs callbacks for ready file descriptors, due timers and queued work, all on
// one goroutine. Everything about an RDMA identifier happens on its loop. A program that only
// wants to read a socket should use package net.
//
// A [Loop] is run by its own goroutine ([Loop.Start]), by the caller's ([Loop.Run]), or inside
// another event loop ([Loop.FD] and [Loop.Turn]). In each turn it waits, calls the handlers of the
// ready fds, fires the due timers, runs queued work (posted functions and [Runnable]s alike) up to
// the turn's budget, and runs work deferred to the turn's end. A turn that finds nothing to do
// costs one system call, and no turn allocates.
//
// # Ownership
//
// The loop's goroutine owns fds, timers, and whatever its callbacks keep there; none of that is
// locked. Any goroutine may call [Loop.Post], [Loop.Schedule], [Loop.Stats], [Loop.OnLoop] and
// [Loop.Name]. Any goroutine but the loop's may call [Loop.Shutdown]. Before the loop runs, one
// goroutine may prepare it as if it were the loop's. It must have finished before another one calls
// Shutdown. Callbacks must not block, because nothing else happens on the loop until they return. A
// watchdog reports those that do (Config.StallAfter). Config.CheckGoroutine finds callers on the
// wrong goroutine.
//
// A file descriptor that is added stays the caller's. The caller calls [Registration.Remove] first
// and closes it afterwards. The goroutine of an embedded loop belongs to its host between two
// Turns. The descriptor that [Loop.FD] returns belongs to the loop. Once the loop has ended, the
// process may use the number for another file.
//
// # Ordering
//
// Queued work runs in the order of the Post and Schedule calls. Work that a callback queues runs in
// the same turn, unless the turn's budget is used up; then fds and timers come first. So the work
// that follows from an fd's event is done in the event's turn. Timers fire in the order of their
// times. Between fds there is no order. Deferred work runs last.
//
// # Waiting
//
// [Block] sleeps in the kernel when there is nothing to do: idle costs nothing, and a wake-up from
// another goroutine takes an eventfd write and a scheduler's wake-up, some 5 to 50 µs. [Spin] polls
// for a while after the last work, at the cost of one processor for that while, then blocks. [Busy]
// never blocks and takes one processor forever.
//
// A polling loop that finds nothing yields to other goroutines every eighth time. If the handler of
// the fd that was ready last is a [Glancer], the loop glances at that fd more often than it polls
// all fds. After [Loop.Handoff] every loop yields, behind the events of the turn and before it
// sleeps. A loop that never passes through Go's scheduler, because its waits are short, yields every
// 5 ms before a wait. Wake-ups are coalesced: there is one write per sleep, and none for work that
// is queued while the loop is awake or by the loop itself.
//
// # Ending
//
// From [Loop.Shutdown] on, Post, Start, Run, Turn and FD fail with [ErrClosed]; a host's Turn first
// ends the loop. Schedule is accepted until no work is left, and accepted work runs.
//
// The rest of the work runs on the goroutine that ran the loop. If no goroutine ran it, the work
// runs on a new one, so that a callback that blocks cannot keep the caller of Shutdown beyond its
// context. A host that calls Shutdown between two Turns runs the work itself.
//
// A Shutdown that runs out of time names the callback that occupies the loop. The loop then ends
// without running the rest. A caller that waits longer gets a [*ShutdownError] with Undone. If a
// host no longer calls Turn, its loop ends immediately. After the end no call has an effect, in
// particular none on descriptors whose numbers have been used again.
//
// # Errors
//
// An operation fails with an [*OpError], which contains the operation, the fd and an errno that
// errors.Is matches. [ErrClosed], [ErrOnLoop] and [ErrRunning] mean wrong use. EINTR is retried.
// When waiting itself fails, the loop runs the work that it has accepted once, ends, logs the
// error, and returns it from Shutdown.
//
// A callback that panics is reported to Config.OnPanic, and the loop goes on. A panic in OnPanic is
// not recovered here. It ends the loop, and also the process unless the caller of Run or Shutdown
// recovers it. An embedded loop goes on if its host recovers the panic.
//
// A callback that calls runtime.Goexit, as testing's FailNow does, ends the loop: the rest of what
// was in progress on its goroutine is lost. It is reported to OnPanic once, with the callback's name
// and the stack. Fds and timers end, and another goroutine, in an embedded loop that of the next
// Turn or Shutdown, calls the functions of [Loop.OnGoexit]. It runs queued work until Shutdown,
// which returns the [*GoexitError]. The same happens after each further Goexit.
//
// If OnStall or LoopName panics, the watchdog goes on. It then reports the type's name in place of
// LoopName's.
//
// # Limitations
//
// A loop needs epoll, and so Linux, unless Config.Poller is set. Timers are never early. They are
// up to a millisecond late, which is epoll_wait's resolution; those of an embedded loop are more
// precise. The queue is not bounded. epoll cannot watch regular files (EPERM).
//
// epoll watches open files, not their numbers. A descriptor that is closed before Remove leaves
// epoll unless it has a duplicate: by dup(2), in a child process, or in a message to another
// process. With a duplicate the kernel goes on reporting the file. Its handler gets these reports
// until it is removed or the number is added again; after that they are dropped. No call takes the
// file out of epoll, and while it is ready the loop does not sleep. The loop logs that once, with
// the number. This lasts until the last duplicate is closed or the loop ends.
package eventloop
