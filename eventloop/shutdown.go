package eventloop

import (
	"context"
	"errors"
)

// Shutdown ends the loop. From now on Post refuses. Queued work is run, and work that this queues,
// but fds and timers are no longer served. Run returns, and epoll, eventfd and timerfd are closed.
// Shutdown waits for all that. Callers should first stop their activities on the loop.
//
// Any goroutine may call it but the loop's and the watchdog's (OnStall), which get ErrOnLoop. The
// goroutine that embeds a loop with Turn may call it between two Turns, and then runs the remaining
// work itself. If the loop is not run, or a callback has ended its host, the remaining work is run
// on a new goroutine. Shutdown is idempotent.
//
// When ctx ends first, the result is a *ShutdownError that names the callback that occupies the
// loop. The loop then ends without draining, as soon as it can. Another Shutdown may wait for that.
// One that was already waiting returns the number of undone pieces of work. A host that has not
// called Turn by then counts as gone: its loop ends immediately, and the number of its FD is free.
// If the loop had failed before, Shutdown returns the reason.
func (l *Loop) Shutdown(ctx context.Context) error {
	knows := l.life.abandon.Load() != nil // the loop is already known not to be drained
	by, err := l.beginShutdown()
	switch {
	case err != nil:
		return err
	case by == byCaller, by == byNobody && ctx.Err() != nil: // after the end of ctx nothing is run
		return l.endHere(ctx)
	case by == byNobody:
		if !l.endElsewhere(ctx) {
			break
		}
	default:
		l.wakeIfAsleep()
	}
	select {
	case <-l.life.done:
		return l.life.result(knows)
	case <-ctx.Done():
	}
	l.life.giveUp(ctx)
	select {
	case <-l.life.done: // both channels were ready
		return l.life.result(knows)
	default:
	}
	stuck := &ShutdownError{Loop: l.cfg.Name, Holder: l.Holder(), Err: context.Cause(ctx)}
	if l.life.takeOver() {
		return errors.Join(stuck, l.releaseResources(nil))
	}
	return stuck
}

// ender is the goroutine that ends a loop that is shut down.
type ender uint8

const (
	byOwner  ender = iota // the goroutine that runs it
	byCaller              // the host, between two Turns
	byNobody              // none yet: the loop is not run
)

// beginShutdown makes Post, Run and Turn refuse from now on, and determines which goroutine ends
// the loop.
func (l *Loop) beginShutdown() (by ender, err error) {
	id := goroutineID()
	onLoop := l.life.goroutine.Load() == id
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	switch l.life.mode {
	case over:
		return byOwner, nil
	case hosted:
		switch {
		case onLoop && !l.life.inTurn:
			by, onLoop = byCaller, false
		case l.life.goroutine.Load() == 0:
			by = byNobody // no Turn yet, or the host is gone
		}
	case fresh:
		by = byNobody
	}
	if onLoop || l.life.watcher.Load() == id {
		return byOwner, l.opError("shutdown", -1, ErrOnLoop)
	}
	l.queue.mu.Lock()
	l.queue.closing = true
	l.queue.mu.Unlock()
	l.life.closing.Store(true)
	if by != byOwner {
		l.life.mode = ending
	}
	return by, nil
}

// endHere drains and ends the loop on the calling goroutine, until ctx ends.
func (l *Loop) endHere(ctx context.Context) error {
	if ctx.Err() != nil {
		l.life.giveUp(ctx)
	}
	stop := context.AfterFunc(ctx, func() { l.life.giveUp(ctx) })
	l.goOn() //nolint:errcheck // result has it
	stop()
	return l.life.result(false)
}

// endElsewhere drains and ends the loop on a new goroutine, so that a callback that blocks cannot
// keep the caller beyond ctx. A panic in OnPanic is passed to the caller, as by Run. It returns
// false if ctx has ended.
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
		l.runLoop() //nolint:errcheck // releaseResources has logged it
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
