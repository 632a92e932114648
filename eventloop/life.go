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
	over                // ended
)

// life is a loop's way from New to its end.
type life struct {
	mu      sync.Mutex
	mode    mode
	owner   atomic.Uint64 // goroutine id of the loop, 0 while it has none
	closing atomic.Bool   // Shutdown has begun
	abandon atomic.Bool   // a Shutdown's context has ended: do not drain any longer
	over    atomic.Bool   // mode is over, for the loop's own calls
	err     error         // why the loop ended by itself; written before done is closed
	done    chan struct{}
}

// claim makes the caller the one who runs the loop, in mode m. A hosted loop may be claimed again by its host.
func (l *Loop) claim(m mode) error {
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	return l.claimLocked(m)
}

func (l *Loop) claimLocked(m mode) error {
	switch {
	case l.life.mode == over:
		return ErrClosed
	case l.life.mode == fresh, l.life.mode == hosted && m == hosted:
		l.life.mode = m
		return nil
	default:
		return ErrRunning
	}
}

// Shutdown ends the loop: Post refuses from now on, what was queued is run (also what that queues, fds and timers no longer), Run
// returns, the goroutine is waited for, and epoll, eventfd and timerfd are closed. Callers stop what they have on the loop first.
//
// Any goroutine but the loop's, which gets ErrOnLoop; the goroutine that embeds a loop with Turn may call it between two Turns.
// Idempotent. When ctx ends first, the result is a *ShutdownError that names who holds the loop, and the loop ends without
// draining as soon as it can; another Shutdown may wait for that. A loop that had ended by itself tells why.
func (l *Loop) Shutdown(ctx context.Context) error {
	mine, err := l.beginShutdown()
	if err != nil {
		return err
	}
	if mine {
		return l.endHere(ctx)
	}
	l.wake()
	select {
	case <-l.life.done:
		return l.life.err
	case <-ctx.Done():
	}
	l.life.abandon.Store(true)
	select {
	case <-l.life.done: // both were ready
		return l.life.err
	default:
		return &ShutdownError{Loop: l.cfg.Name, Holder: l.currentHolder(), Err: context.Cause(ctx)}
	}
}

// beginShutdown closes the door and says whether the caller has to end the loop itself, because nobody runs it.
func (l *Loop) beginShutdown() (mine bool, err error) {
	onLoop := l.OnLoop()
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	switch l.life.mode {
	case over:
		return false, nil
	case running:
		if onLoop {
			return false, l.opError("shutdown", -1, ErrOnLoop)
		}
	case hosted:
		if onLoop && l.embedded.inTurn {
			return false, l.opError("shutdown", -1, ErrOnLoop)
		}
		mine = onLoop || l.life.owner.Load() == 0 // no Turn yet: there is no goroutine to wait for
	case fresh:
		mine = true
	}
	l.queue.mu.Lock()
	l.queue.closing = true
	l.queue.mu.Unlock()
	l.life.closing.Store(true)
	if mine {
		l.life.mode = running
		l.life.owner.Store(goroutineID())
	}
	return mine, nil
}

// endHere drains and ends a loop that nobody runs, on the calling goroutine, until ctx ends.
func (l *Loop) endHere(ctx context.Context) error {
	l.drain(ctx.Done())
	unfinished := l.queue.pending() || len(l.deferred) > 0
	err := l.finish(nil)
	if unfinished {
		return errors.Join(&ShutdownError{Loop: l.cfg.Name, Err: context.Cause(ctx)}, err)
	}
	return err
}

// drain runs what is queued and deferred, and what that queues, until nothing is left or nobody waits any longer.
func (l *Loop) drain(stop <-chan struct{}) {
	for !l.life.abandon.Load() {
		select {
		case <-stop:
			return
		default:
		}
		l.now = l.clock.Now()
		l.turns.Add(1)
		ran := l.runQueue() + l.runDeferred()
		l.holder.Store(nil)
		if ran == 0 {
			return
		}
	}
}

// finish ends the loop: nothing is accepted any more, and everything is given back.
func (l *Loop) finish(err error) error {
	l.holder.Store(nil)
	l.queue.mu.Lock()
	l.queue.closing, l.queue.ended = true, true
	lost := len(l.queue.in) + len(l.queue.batch) - l.queue.pos
	l.queue.mu.Unlock()
	l.life.closing.Store(true)
	l.life.over.Store(true)
	owners.CompareAndDelete(l.life.owner.Load(), l)
	l.life.owner.Store(0)
	l.stopWatchdog()
	err = errors.Join(err, l.opError("close", -1, l.poller.Close()))
	if err != nil || lost > 0 {
		l.log.Error("eventloop: ended", "loop", l.cfg.Name, "err", err, "never run", lost)
	}
	l.life.mu.Lock()
	l.life.mode, l.life.err = over, err
	l.life.mu.Unlock()
	close(l.life.done)
	return err
}
