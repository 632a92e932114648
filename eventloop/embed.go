package eventloop

import "errors"

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
	fd, err := e.embed()
	if err != nil {
		return -1, l.opError("fd", -1, err)
	}
	if l.embedded == nil {
		l.embedded, l.armed = e, never
		if !l.life.inTurn {
			return fd, l.parkHosted()
		}
	}
	return fd, nil
}

// Turn runs one turn of an embedded loop. It handles all work that is ready now (ready fds, due
// timers, queued work up to the turn's budget, deferred work) and returns without blocking. All
// Turns happen on one goroutine, which is the loop's. Another one may take over when a callback has
// ended that goroutine (Goexit). It returns ErrClosed after a call of Shutdown: this Turn has
// drained and ended the loop, or the loop had ended before; ErrRunning inside a Turn and when Run
// runs. Any other error has ended the loop.
func (l *Loop) Turn() error {
	if err := l.enterTurn(); err != nil {
		return l.opError("turn", -1, err)
	}
	whole := false
	defer l.leaveTurn(&whole)
	l.asleep.Store(false)
	if !l.life.closing.Load() {
		if _, err := l.turn(0, false); err != nil {
			l.runLast()
			whole = true
			return l.finish(err)
		}
	}
	if l.life.closing.Load() {
		l.drain()
		whole = true
		return l.opError("turn", -1, errors.Join(ErrClosed, l.finish(nil)))
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
	l.checkOwner()
	l.life.inTurn, l.between = true, false
	if l.life.owner.Load() == 0 {
		l.life.own()
		l.startWatchdog()
	}
	return nil
}

// leaveTurn ends a Turn. whole is false when a Goexit, or a panic in OnPanic, broke the Turn off.
func (l *Loop) leaveTurn(whole *bool) {
	l.meter.end(l.elapsed())
	l.between = true
	if *whole {
		l.life.mu.Lock()
		l.life.inTurn = false
		l.life.mu.Unlock()
		return
	}
	v := recover()
	defer func() {
		if v != nil {
			panic(v) // for the host to recover
		}
	}()
	l.brokenTurn(v != nil)
}

// brokenTurn tidies up a loop whose Turn was broken off. If a Shutdown waits, the loop ends.
// Otherwise it waits for its next Turn, from its host if that has recovered, or else from the
// goroutine that takes the host's place.
func (l *Loop) brokenTurn(panicked bool) {
	goesOn := false
	defer func() { // even if OnPanic panics or exits
		l.breakOff()
		if err := l.parkHosted(); err != nil {
			l.log.Error("eventloop: wake-up failed", "loop", l.cfg.Name, "err", err)
		}
		l.life.mu.Lock()
		l.life.inTurn = false
		closing := l.life.closing.Load()
		if closing {
			l.life.mode = ending
		}
		if closing || !panicked {
			l.life.disown()
		}
		l.life.mu.Unlock()
		switch {
		case closing && goesOn:
			go l.goOn() //nolint:errcheck // finish has logged it
		case closing:
			l.finish(errGoexit) //nolint:errcheck // Shutdown reports it
		}
	}()
	if !panicked {
		goesOn = l.exited()
	}
}

// parkHosted is park for an embedded loop: it makes FD readable immediately, at the earliest timer,
// or on the next wake-up.
func (l *Loop) parkHosted() error {
	if l.embedded == nil {
		return nil
	}
	if !l.queue.pending() && len(l.deferred) == 0 {
		l.armHosted()
		if l.handoff > 0 {
			l.handoff = 0
			l.yield()
		}
		l.asleep.Store(true)
		if !l.queue.pending() && !l.life.closing.Load() {
			return nil
		}
		if !l.asleep.CompareAndSwap(true, false) {
			return nil // the caller that queued it has woken the loop
		}
	}
	l.wakeups.Add(1)
	return l.opError("turn", -1, l.poller.Wake())
}
