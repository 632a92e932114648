package eventloop

import (
	"errors"
	"log/slog"
	"math"
)

// FD returns the descriptor of a loop that is embedded in another event loop. The host puts it into
// its poll, select or epoll, level-triggered. When it is readable, Turn has work to do. The
// descriptor belongs to the loop, which closes it at its end. The host's last Turn or its Shutdown
// ends the loop. So does a Shutdown from any goroutine before the host's first Turn, or when the
// host no longer calls Turn. Errors: errors.ErrUnsupported with a custom Poller, ErrRunning when
// Run runs, ErrClosed after the end. Call it on the goroutine that will call Turn.
func (l *Loop) FD() (int, error) {
	// excludes a Shutdown on another goroutine, which does not wait for a host before its first
	// Turn
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	if err := l.life.claimLocked(hosted); err != nil {
		return -1, l.opError("fd", -1, err)
	}
	e, ok := l.poller.(embedder)
	if !ok {
		return -1, l.opError("fd", -1, errors.ErrUnsupported)
	}
	fd, err := e.embedFD()
	if err != nil {
		return -1, l.opError("fd", -1, err)
	}
	if l.host.embedded == nil {
		l.host = hostTimer{e, never, l.cfg.Name, l.log}
		if !l.life.inTurn {
			return fd, l.parkHosted()
		}
	}
	return fd, nil
}

// Turn runs one turn of an embedded loop. It handles all work that is ready now (ready fds, due
// timers, queued work up to the turn's budget, deferred work) and returns without blocking. All
// Turns happen on one goroutine, which is the loop's. It returns ErrClosed after a call of
// Shutdown: this Turn has drained and ended the loop, or the loop had ended before; ErrRunning
// inside a Turn and when Run runs. Any other error has ended the loop. If a callback has ended the
// goroutine, the next Turn, on another one, ends the loop: ErrClosed, and a *GoexitError.
func (l *Loop) Turn() error {
	if err := l.enterTurn(); err != nil {
		return l.opError("turn", -1, err)
	}
	whole := false
	defer l.leaveTurn(&whole)
	l.asleep.Store(false)
	if !l.life.closing.Load() && l.life.failure == nil {
		if _, err := l.runTurn(0, false); err != nil {
			l.runLast()
			whole = true
			return l.releaseResources(err)
		}
	}
	if l.life.closing.Load() || l.life.failure != nil {
		l.tearDown()
		l.drainWork()
		whole = true
		return l.opError("turn", -1, errors.Join(ErrClosed, l.releaseResources(nil)))
	}
	whole = true
	return l.parkHosted()
}

func (l *Loop) enterTurn() error {
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	if err := l.life.claimLocked(hosted); err != nil {
		return err
	}
	if l.life.inTurn {
		return ErrRunning
	}
	l.checkGoroutine()
	l.life.inTurn, l.between = true, false
	if l.life.goroutine.Load() == 0 {
		l.life.setGoroutine()
		l.watchdog.start()
	}
	return nil
}

// leaveTurn ends a Turn. whole is false when a Goexit, or a panic in OnPanic, broke the Turn off.
func (l *Loop) leaveTurn(whole *bool) {
	l.meter.endTurn(l.time.elapsed())
	l.between = true
	if *whole {
		l.life.mu.Lock()
		l.life.inTurn = false
		l.life.mu.Unlock()
		return
	}
	v := recover()
	if v == nil {
		l.goroutineEnded()
		return
	}
	defer panic(v) // for the host to recover
	l.breakOff()
	if err := l.parkHosted(); err != nil {
		l.log.Error("eventloop: wake-up failed", "loop", l.cfg.Name, "err", err)
	}
	l.life.mu.Lock()
	l.life.inTurn = false
	closing := l.life.closing.Load()
	if closing {
		l.life.mode = ending
		l.life.clearGoroutine()
	}
	l.life.mu.Unlock()
	if closing {
		l.releaseResources(errOnPanic) //nolint:errcheck // Shutdown reports it
	}
}

// parkHosted parks an embedded loop: it makes FD readable immediately, at the earliest timer,
// or on the next wake-up.
func (l *Loop) parkHosted() error {
	if l.host.embedded == nil {
		return nil
	}
	if !l.queue.hasWork() && len(l.deferred.next) == 0 {
		l.host.arm(&l.timers, &l.time)
		if l.handoff > 0 {
			l.handoff = 0
			l.yield()
		}
		l.asleep.Store(true)
		if !l.queue.hasWork() && !l.life.closing.Load() {
			return nil
		}
		if !l.asleep.CompareAndSwap(true, false) {
			return nil // the caller that queued it has woken the loop
		}
	}
	l.wakeups.Add(1)
	return l.opError("turn", -1, l.poller.Wake())
}

// hostTimer is what makes the FD of an embedded loop readable when a timer is due.
type hostTimer struct {
	embedded embedder // nil until FD is called
	armed    int64    // expiry of the timerfd, in the timers' time; never: not armed
	loop     string
	log      *slog.Logger
}

const never = math.MaxInt64

// arm sets the timerfd to the earliest timer, if it is not set to it already.
func (h *hostTimer) arm(timers *timerHeap, clock *turnClock) {
	next := int64(never)
	if len(timers.heap) > 0 {
		next = timers.heap[0].when
	}
	if next == h.armed {
		return
	}
	if err := h.embedded.armTimer(timers.until(clock.elapsed())); err != nil {
		h.log.Error("eventloop: timerfd", "loop", h.loop, "err", err)
		return
	}
	h.armed = next
}
