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
	turn sync.Mutex // one call at a time, which has it also while it waits
	mu   sync.Mutex // all the rest; never for long

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

// waitLocked gives up mu until signalLocked. The caller looks at everything again. On the
// goroutine of a loop, which must not wait, it is eventloop.ErrOnLoop, when that is noticed.
func (w *waiter) waitLocked() error {
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

// giveUp ends a wait that signalLocked has not ended, or takes its token.
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

// signalLocked ends wait, and reports whether anybody waited.
func (w *waiter) signalLocked() (woke bool) {
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
	return w.signalLocked()
}

// closeLocked ends waiting for good.
func (w *waiter) closeLocked() {
	w.closed = true
	w.stopTimerLocked()
	w.signalLocked()
}

// setDeadline is SetReadDeadline and its like. Not ok: it is closed.
func (w *waiter) setDeadline(t time.Time) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.setTimerLocked(t)
	}
	return !w.closed
}

// setTimerLocked has the wait end at t.
func (w *waiter) setTimerLocked(t time.Time) {
	w.at, w.expired = time.Time{}, false
	if t.IsZero() {
		w.stopTimerLocked()
		return
	}
	left := time.Until(t)
	if left <= 0 {
		w.expired = true
		w.stopTimerLocked()
		w.signalLocked()
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
	w.signalLocked()
}

func (w *waiter) stopTimerLocked() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
