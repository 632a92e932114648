package eventloop

import (
	"fmt"
	"runtime/debug"
	"slices"
)

// GoexitError: a callback has ended the loop's goroutine by runtime.Goexit, as testing's FailNow
// and SkipNow do, and with it the loop.
type GoexitError struct {
	Loop   string
	Holder Holder // the callback; the zero value: a custom Poller
	Stack  []byte // of the goroutine
}

func (e *GoexitError) Error() string {
	return fmt.Sprintf("eventloop %s: ended, because %v called runtime.Goexit (as testing's FailNow does): return from callbacks instead",
		e.Loop, e.Holder)
}

// OnGoexit registers end, which is called each time that a callback ends the loop's goroutine, on
// the one that takes its place; also if end itself does. end releases what its caller has on the
// loop; the last registered is called first. Fds and timers have ended by then. Queued work still
// runs, until Shutdown. err is the first *GoexitError. Loop goroutine.
func (l *Loop) OnGoexit(end func(err error)) {
	l.checkGoroutine()
	l.ends = append(l.ends, end)
}

// goroutineEnded handles the end of the loop's goroutine in a callback. It is deferred on that
// goroutine, below the callback's stack. The teardown has another one. If a custom Poller has ended
// the goroutine, the loop ends without.
func (l *Loop) goroutineEnded() {
	r := l.calls.answerable()
	err := l.failByGoexit(r)
	if r == nil {
		l.releaseResources(nil) //nolint:errcheck // Shutdown returns it
		return
	}
	defer l.passOn() // even if OnPanic does not return
	if !l.calls.reporting {
		l.calls.reportPanic(r, err, err.Stack)
	}
}

// passOn passes the loop to another goroutine: a hosted one to that of the next Turn, or of
// Shutdown.
func (l *Loop) passOn() {
	l.breakOff()
	l.life.mu.Lock() // a Shutdown finds the loop's goroutine, or that the loop waits for one
	defer l.life.mu.Unlock()
	l.life.clearGoroutine()
	l.life.inTurn = false
	if l.life.mode == hosted && !l.life.closing.Load() {
		_ = l.poller.Wake() // its FD is readable
		return
	}
	l.life.mode = ending
	go l.goOn() //nolint:errcheck // releaseResources has logged it
}

// failByGoexit ends fds and timers, because r has ended the loop's goroutine. The first failure is
// the loop's error.
func (l *Loop) failByGoexit(r *Runnable) *GoexitError {
	err := &GoexitError{Loop: l.cfg.Name, Stack: debug.Stack()}
	if r != nil {
		err.Holder, _ = identifyRunnable(*r)
	}
	l.life.mu.Lock()
	if l.life.failure == nil {
		l.life.failure = err
	}
	l.life.over.Store(true)
	l.life.mu.Unlock()
	for fd, w := range l.fds.byFD {
		l.fds.remove(w)
		_ = l.poller.Remove(fd) // an error means that it was closed
	}
	l.timers.clear()
	return err
}

// tearDown calls the functions of OnGoexit.
func (l *Loop) tearDown() {
	if l.life.failure == nil {
		return
	}
	for _, f := range slices.Backward(l.ends) {
		end := Runnable(endFunc{l, f})
		l.calls.run(&end)
	}
}

// endFunc makes a function of OnGoexit a Runnable, for callbacks.run.
type endFunc struct {
	l   *Loop
	end func(error)
}

func (f endFunc) Run(int) bool {
	f.end(f.l.life.failure)
	return false
}

func (f endFunc) identifyCallback() (Holder, any) { return Holder{"post", functionName(f.end)}, nil }

// breakOff keeps the rest of a turn for the next one.
func (l *Loop) breakOff() {
	l.calls.reporting = false
	l.calls.holder.Store(nil)
	l.countRuns()
	l.deferred.keepRest()
}
