package eventloop

import "errors"

// FD is for loops that are embedded instead of run: a descriptor to put into anybody's poll, select
// or epoll, level-triggered. When it is readable, Turn has something to do. It belongs to the loop,
// whose end closes it: the host's last Turn, its Shutdown, or, before its first Turn and when it
// does not come back, anybody's Shutdown. errors.ErrUnsupported with a Poller of the caller's;
// ErrRunning when Run runs, ErrClosed after the end. Call it on the goroutine that will call Turn.
func (l *Loop) FD() (int, error) {
	// against a Shutdown from elsewhere, which waits for no host before its first Turn
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

// Turn is for loops that are embedded instead of run: it does, without blocking, what there is to
// do now (ready fds, due timers, queued work up to the turn's budget, deferred work) and returns.
// All Turns happen on one goroutine, which is the loop's; another one may take over when a callback
// has ended that (Goexit). ErrClosed once Shutdown has begun: that Turn drained and ended the loop,
// or it has ended before. ErrRunning inside a Turn and when Run runs. Any other error has ended the
// loop.
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
	l.life.inTurn = true
	if l.life.owner.Load() == 0 {
		l.life.own()
		l.startWatchdog()
	}
	return nil
}

// leaveTurn ends a Turn. One that is not whole was broken off by a Goexit or a panic in OnPanic.
func (l *Loop) leaveTurn(whole *bool) {
	if *whole {
		l.life.mu.Lock()
		l.life.inTurn = false
		l.life.mu.Unlock()
		return
	}
	v := recover()
	defer func() {
		if v != nil {
			panic(v) // the host's to recover
		}
	}()
	l.brokenTurn(v != nil)
}

// brokenTurn leaves a loop in order whose Turn was broken off: it ends if somebody waits for that,
// and otherwise has its next Turn, of its host that has recovered, or of whoever takes the place of
// one that is gone.
func (l *Loop) brokenTurn(panicked bool) {
	goesOn := false
	defer func() { // whatever OnPanic does now
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

// parkHosted is park for a loop that others wait for: it makes FD readable at once, at the
// earliest timer, or on the next wake-up.
func (l *Loop) parkHosted() error {
	if l.embedded == nil {
		return nil
	}
	if !l.queue.pending() && len(l.deferred) == 0 {
		l.armHosted()
		if l.handoff {
			l.handoff = false
			l.yield()
		}
		l.asleep.Store(true)
		if !l.queue.pending() && !l.life.closing.Load() {
			return nil
		}
		if !l.asleep.CompareAndSwap(true, false) {
			return nil // who queued it has woken the loop
		}
	}
	l.wakeups.Add(1)
	return l.opError("turn", -1, l.poller.Wake())
}
