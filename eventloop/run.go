package eventloop

import "errors"

// Start runs the loop on a new goroutine. The error that Run would return is logged, and returned
// by Shutdown. Start does nothing to a loop whose Shutdown has begun. Starting a loop that runs
// already is a bug, and panics.
func (l *Loop) Start() {
	if err := l.life.claim(running); err != nil {
		if errors.Is(err, ErrClosed) {
			return
		}
		panic(l.opError("run", -1, err))
	}
	go l.runLoop() //nolint:errcheck // releaseResources has logged it
}

// Run runs the loop on the calling goroutine, which becomes the loop's, until Shutdown. An error
// means that the loop ended because waiting failed (never for EINTR). Run returns ErrRunning when
// the loop is already run, and ErrClosed after a call of Shutdown.
func (l *Loop) Run() error {
	if err := l.life.claim(running); err != nil {
		return l.opError("run", -1, err)
	}
	return l.runLoop()
}

func (l *Loop) runLoop() (err error) {
	l.watchdog.start()
	return l.goOn()
}

// errOnPanic is the error of a loop whose OnPanic has panicked.
var errOnPanic = errors.New("OnPanic or the Poller has panicked")

// goOn runs a loop on the calling goroutine, which becomes its own.
func (l *Loop) goOn() error {
	l.life.setGoroutine()
	l.between = false
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			defer panic(v)                 // for the caller of Run or Shutdown to recover
			l.releaseResources(errOnPanic) //nolint:errcheck // Shutdown returns it
			return
		}
		l.goroutineEnded()
	}()
	l.tearDown()
	err := l.runUntilShutdown()
	returned = true
	return l.releaseResources(err)
}

// runUntilShutdown runs turns until Shutdown.
func (l *Loop) runUntilShutdown() error {
	for !l.life.closing.Load() {
		worked, err := l.runTurn(l.prepareWait(), l.cfg.Wait != Block)
		if err != nil {
			l.runLast()
			return err
		}
		if l.cfg.Wait != Block {
			l.endPolledTurn(worked)
		}
	}
	l.drainWork()
	return nil
}

// drainWork runs queued and deferred work, and the work that this queues. It ends when nothing is
// left, and Schedule refuses from then on. It also ends when Shutdown stops waiting.
func (l *Loop) drainWork() {
	for l.life.abandon.Load() == nil {
		l.time.read()
		l.meter.beginTurn(l.time.since(l.time.now))
		l.calls.turns.Add(1)
		ran := l.runQueue() + l.deferred.run(&l.queue.mu, &l.calls)
		l.calls.holder.Store(nil)
		if ran == 0 && l.queue.sealIfEmpty() {
			return
		}
	}
	l.at.undone = len(l.deferred.next)
}

// runLast drains a loop whose wait has failed. No context bounds it, so all accepted work is
// run once only.
func (l *Loop) runLast() {
	for range l.queue.closeIntake() {
		if r := l.queue.next(); l.calls.run(r) {
			l.queue.pushAgain(*r)
		}
	}
	l.deferred.run(&l.queue.mu, &l.calls)
}

// releaseResources ends the loop: it accepts no more work and releases all resources, even if the
// Poller or the Logger panics.
func (l *Loop) releaseResources(err error) error {
	l.calls.holder.Store(nil)
	undone := l.queue.closeIntake() + l.at.undone
	left := l.life.undoneError(l.cfg.Name, undone)
	l.life.closing.Store(true)
	l.life.over.Store(true)
	l.life.clearGoroutine()
	defer func() {
		l.life.mu.Lock()
		l.life.mode, l.life.err, l.life.left = over, err, left
		l.life.mu.Unlock()
		close(l.life.done)
	}()
	defer l.watchdog.stop()
	err = errors.Join(l.life.failure, err, l.opError("close", -1, l.poller.Close()))
	if err != nil || left != nil {
		l.log.Error("eventloop: ended", "loop", l.cfg.Name, "err", errors.Join(err, left), "undone", undone)
	}
	return err
}
