// Package eventlooptest runs event loops without a kernel: a [Poller] whose readiness, errors and
// stale reports are scripted, and a [Clock] that is moved by hand. Inside a testing/synctest
// bubble a loop on a Poller blocks durably, so everything above the loop runs in virtual time
// there; make the Poller and the loop inside the bubble.
//
// # Ownership
//
// A Poller belongs to one loop, which closes it. The scripting methods (Fire, Fail, ...) are for
// any goroutine.
//
// # Ordering
//
// Reports are delivered in the order of the Fire calls.
//
// # Errors
//
// Add, Modify and Remove fail as epoll's do (EEXIST, ENOENT), or with the errors that Fail has
// queued for them, once per queued error.
//
// # Limitations
//
// Fire is one report, not a level: when a handler leaves work undone, the test has to call Fire
// again. Only loops with [eventloop.Block] work here: a polling loop never blocks, so time in a
// bubble would stand still.
package eventlooptest
