package rdmanet

import (
	"sync"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// waiter is one direction of a connection, or a listener: a lock, the goroutine that waits, and its
// deadline. There is one goroutine that waits at a time: whoever has the turn.
type waiter struct {
	turn sync.Mutex // one call at a time; held while it waits
	mu   sync.Mutex // all the rest; never held for long

	rt      *rdma.Runtime
	wake    chan struct{} // one token for each time that waiting ends
	waiting bool
	timer   *time.Timer
	at      time.Time // the deadline, on the monotonic clock; zero: none, or it has passed
	expired bool
	closed  bool
	err     error // nothing comes, or goes, any more
}

// newWake makes a waiter's channel.
func newWake() chan struct{} { return make(chan struct{}, 1) }

// wait gives up mu until signal. The caller looks at everything again. On the goroutine of a loop,
// which must not wait, it is eventloop.ErrOnLoop, when that is noticed.
func (w *waiter) wait() error {
	w.waiting = true
	w.mu.Unlock()
	defer w.mu.Lock()
	for {
		select {
		case <-w.wake:
			return nil
		case <-w.rt.Stalled():
			if err := eventloop.MayWait(); err != nil {
				return w.giveUp(err)
			}
		}
	}
}

// giveUp ends a wait that signal has not ended, or takes its token.
func (w *waiter) giveUp(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting {
		<-w.wake
		return nil
	}
	w.waiting = false
	return err
}

// signal ends wait, and reports whether anybody waited. The caller has mu.
func (w *waiter) signal() (woke bool) {
	if !w.waiting {
		return false
	}
	w.waiting = false
	w.wake <- struct{}{}
	return true
}

// end says that nothing comes, or goes, any more, and why.
func (w *waiter) end(err error) (woke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	return w.signal()
}

// close ends waiting for good. The caller has mu.
func (w *waiter) close() {
	w.closed = true
	w.stopTimer()
	w.signal()
}

// setDeadline is SetReadDeadline and its like. Not ok: it is closed.
func (w *waiter) setDeadline(t time.Time) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.setTimer(t)
	}
	return !w.closed
}

// setTimer has the wait end at t. The caller has mu.
func (w *waiter) setTimer(t time.Time) {
	w.at, w.expired = time.Time{}, false
	if t.IsZero() {
		w.stopTimer()
		return
	}
	left := time.Until(t)
	if left <= 0 {
		w.expired = true
		w.stopTimer()
		w.signal()
		return
	}
	w.at = time.Now().Add(left)
	if w.timer == nil {
		w.timer = time.AfterFunc(left, w.expire)
		return
	}
	w.timer.Reset(left)
}

// expire is the timer's. It may come too late to be stopped: then the deadline is another one, or
// none.
func (w *waiter) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at.IsZero() || time.Now().Before(w.at) {
		return
	}
	w.at, w.expired = time.Time{}, true
	w.signal()
}

func (w *waiter) stopTimer() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
