package eventloop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// mode is who runs a loop.
type mode uint8

const (
	fresh   mode = iota // nobody yet: Run, Start, Turn, FD or Shutdown decides
	running             // Run
	hosted              // somebody else's loop, through Turn
	ending              // Shutdown: nobody else did
	over                // ended
)

// life is a loop's way from New to its end.
type life struct {
	mu      sync.Mutex
	mode    mode
	owner   atomic.Uint64         // goroutine id of the loop, 0 while it has none
	closing atomic.Bool           // Shutdown has begun
	abandon atomic.Pointer[error] // why a Shutdown does not wait any longer: do not drain
	over    atomic.Bool           // mode is over, for the loop's own calls
	err     error                 // why the loop ended by itself; written before done is closed
	left    error                 // what it left undone; likewise
	done    chan struct{}
}

// claim makes the caller the one who runs the loop, in mode m. A hosted loop may be claimed again
// by its host, also to end it.
func (l *Loop) claim(m mode) error {
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	return l.claimLocked(m)
}

func (l *Loop) claimLocked(m mode) error {
	switch {
	case l.life.mode == hosted && m == hosted:
		return nil
	case l.life.closing.Load():
		return ErrClosed
	case l.life.mode == fresh:
		l.life.mode = m
		return nil
	default:
		return ErrRunning
	}
}

// own makes the calling goroutine the loop's.
func (l *Loop) own() {
	id := goroutineID()
	l.life.owner.Store(id)
	owners.add(id, l)
}

// disown leaves the loop without a goroutine.
func (l *Loop) disown() { owners.remove(l.life.owner.Swap(0), l) }

// holds says whether the loop's goroutine is in its hands now: a host's is its own between Turns.
func (l *Loop) holds() bool {
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	return l.life.mode != hosted || l.embedded.inTurn
}

// Shutdown ends the loop: Post refuses from now on, what was queued is run (also what that queues,
// fds and timers no longer), Run returns, the goroutine is waited for, and epoll, eventfd and
// timerfd are closed. Callers stop what they have on the loop first.
//
// Any goroutine but the loop's and the watchdog's (OnStall), which get ErrOnLoop. The goroutine
// that embeds a loop with Turn may call it between two Turns, and runs what is left itself; what is
// left on a loop that nobody runs, or whose host a callback has ended, is run on a goroutine of its
// own. Idempotent.
//
// When ctx ends first, the result is a *ShutdownError that names who holds the loop, and the loop
// ends without draining as soon as it can; another Shutdown may wait for that. One that was called
// before is told how much was left undone. A host that has not called Turn by then has left: its
// loop is ended at once, and the number that FD gave it is free. A loop that had ended by itself
// tells why.
func (l *Loop) Shutdown(ctx context.Context) error {
	knows := l.life.abandon.Load() != nil // that it is not drained
	by, err := l.beginShutdown()
	switch {
	case err != nil:
		return err
	case by == theCaller, by == nobody && ctx.Err() != nil: // when ctx has ended nothing is run
		return l.endHere(ctx)
	case by == nobody:
		if !l.endElsewhere(ctx) {
			break
		}
	default:
		l.wake()
	}
	select {
	case <-l.life.done:
		return l.outcome(knows)
	case <-ctx.Done():
	}
	l.giveUp(ctx)
	select {
	case <-l.life.done: // both were ready
		return l.outcome(knows)
	default:
	}
	stuck := &ShutdownError{Loop: l.cfg.Name, Holder: l.currentHolder(), Err: context.Cause(ctx)}
	if l.takeOver() {
		return errors.Join(stuck, l.finish(nil))
	}
	return stuck
}

// who ends a loop that is shut down.
type ender uint8

const (
	itsOwner  ender = iota // who runs it already
	theCaller              // its host, between two Turns
	nobody                 // nobody runs it
)

// beginShutdown closes the door and says who ends the loop.
func (l *Loop) beginShutdown() (by ender, err error) {
	id := goroutineID()
	onLoop := l.life.owner.Load() == id
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	switch l.life.mode {
	case over:
		return itsOwner, nil
	case hosted:
		switch {
		case onLoop && !l.embedded.inTurn:
			by, onLoop = theCaller, false
		case l.life.owner.Load() == 0:
			by = nobody // no Turn yet, or the host is gone
		}
	case fresh:
		by = nobody
	}
	if onLoop || l.watchdog.id.Load() == id {
		return itsOwner, l.opError("shutdown", -1, ErrOnLoop)
	}
	l.queue.mu.Lock()
	l.queue.closing = true
	l.queue.mu.Unlock()
	l.life.closing.Store(true)
	if by != itsOwner {
		l.life.mode = ending
	}
	return by, nil
}

// giveUp has the loop end without draining.
func (l *Loop) giveUp(ctx context.Context) {
	why := context.Cause(ctx)
	l.life.abandon.CompareAndSwap(nil, &why)
}

// endHere drains and ends the loop on the calling goroutine, until ctx ends.
func (l *Loop) endHere(ctx context.Context) error {
	if ctx.Err() != nil {
		l.giveUp(ctx)
	}
	stop := context.AfterFunc(ctx, func() { l.giveUp(ctx) })
	l.goOn() //nolint:errcheck // outcome has it; a Goexit leaves ctx in force: another goroutine goes on
	stop()
	return l.outcome(false)
}

// outcome is what Shutdown tells of a loop that has ended. Who came after the one that ran out of
// time knows that nothing is drained, and is told the rest.
func (l *Loop) outcome(knows bool) error {
	if knows {
		return l.life.err
	}
	return errors.Join(l.life.err, l.life.left)
}

// endElsewhere drains and ends the loop on a goroutine of its own, so that a callback that blocks
// cannot keep the caller beyond ctx. A panic in OnPanic is the caller's, as it would be Run's.
// False: ctx has ended.
func (l *Loop) endElsewhere(ctx context.Context) bool {
	ended, gone := make(chan any), make(chan struct{})
	defer close(gone)
	go func() {
		defer func() {
			v := recover()
			select {
			case ended <- v:
			case <-gone:
				if v != nil {
					panic(v)
				}
			}
		}()
		l.runLoop() //nolint:errcheck // finish has logged it
	}()
	select {
	case v := <-ended:
		if v != nil {
			panic(v)
		}
		return true
	case <-ctx.Done():
		return false
	}
}

// takeOver takes a loop from a host that does not call Turn.
func (l *Loop) takeOver() bool {
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	if l.life.mode != hosted || l.embedded.inTurn {
		return false
	}
	l.life.mode = ending
	return true
}

// drain runs what is queued and deferred, and what that queues, until nothing is left, from when on
// Schedule refuses, or nobody waits any longer.
func (l *Loop) drain() {
	for l.life.abandon.Load() == nil {
		l.now = l.clock.Now()
		l.turns.Add(1)
		ran := l.runQueue() + l.runDeferred()
		l.holder.Store(nil)
		if ran == 0 && l.queue.seal() {
			return
		}
	}
	l.at.undone = len(l.deferred)
}

// runLast is the drain of a loop that cannot wait any more, which nobody bounds: everything that
// was accepted has one run.
func (l *Loop) runLast() {
	for range l.queue.end() {
		if r := l.queue.next(); l.call(r) {
			l.queue.again(*r)
		}
	}
	l.runDeferred()
}

// finish ends the loop: nothing is accepted any more, and everything is given back, whatever the
// Poller and the Logger do.
func (l *Loop) finish(err error) error {
	l.holder.Store(nil)
	undone := l.queue.end() + l.at.undone
	left := l.undone(undone)
	l.life.closing.Store(true)
	l.life.over.Store(true)
	l.disown()
	defer func() {
		l.life.mu.Lock()
		l.life.mode, l.life.err, l.life.left = over, err, left
		l.life.mu.Unlock()
		close(l.life.done)
	}()
	defer l.stopWatchdog()
	err = errors.Join(err, l.opError("close", -1, l.poller.Close()))
	if err != nil || left != nil {
		l.log.Error("eventloop: ended", "loop", l.cfg.Name, "err", errors.Join(err, left), "never run", undone)
	}
	return err
}

// undone says that a loop was abandoned with work left.
func (l *Loop) undone(n int) error {
	why := l.life.abandon.Load()
	if n == 0 || why == nil {
		return nil
	}
	return &ShutdownError{Loop: l.cfg.Name, Undone: n, Err: *why}
}
