package eventloop

import (
	"errors"
	"runtime/debug"
)

// A callback that calls runtime.Goexit (testing's FailNow does) takes the goroutine along that it
// is called on, and nothing can keep it. What is on the loop is not the callback's: it goes on on
// another goroutine, with what the turn had not come to.

// errGoexit is what such a callback is reported with, like a panic's value; and what a loop has ended
// with when OnPanic ends its goroutine.
var errGoexit = errors.New("a callback ended the loop's goroutine (runtime.Goexit, or a panic in OnPanic)")

// progress is where a turn is.
type progress struct {
	reports   int  // fds that are ready
	told      int  // of them
	flushed   int  // of flushing
	undone    int  // deferred work that was left
	reporting bool // OnPanic is under way: its end is the loop's
}

// exited is deferred by whoever runs the loop, when a callback ends the goroutine. False: so does
// OnPanic, or it was no callback (a Poller of the caller's).
func (l *Loop) exited() (goesOn bool) {
	r := l.holder.Load()
	if l.at.reporting || r == nil {
		return false
	}
	l.report(r, errGoexit, debug.Stack())
	l.breakOff()
	return true
}

// breakOff puts away what a turn has not come to.
func (l *Loop) breakOff() {
	l.at.reporting = false
	l.holder.Store(nil)
	l.deferred = append(l.deferred, l.flushing[l.at.flushed:]...)
	l.at.flushed = len(l.flushing)
}

// goOn runs a loop on the calling goroutine, which becomes its own.
func (l *Loop) goOn() (err error) {
	l.own()
	err = errGoexit // what is left to say when a callback ends the goroutine under us
	goesOn := false
	defer func() {
		if !goesOn {
			err = l.finish(err)
		}
	}()
	defer func() {
		if err == errGoexit && l.exited() {
			goesOn = true
			l.disown()
			go l.goOn() //nolint:errcheck // finish has logged it
		}
	}()
	err = l.work()
	return err
}
