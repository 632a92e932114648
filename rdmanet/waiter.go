package rdmanet

import (
	"sync"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// waiter lets the callers of one direction of a connection, or of a listener, wait: it has a lock,
// a deadline, and a channel that wakes the waiting goroutine. One goroutine waits at a time: the
// one that has locked turn.
type waiter struct {
	turn sched.Lock // held by the current call, even while it waits
	mu   sync.Mutex // guards all fields below; never locked for long

	rt      *rdma.Runtime
	wake    chan struct{} // one token for each end of a wait
	waiting bool
	timer   *time.Timer
	at      time.Time // the deadline, on the monotonic clock; zero: none, or it has passed
	expired bool
	closed  bool
	err     error // why nothing more is sent or received
}

// newWake makes a waiter's channel.
func newWake() chan struct{} { return make(chan struct{}, 1) }

// waitLocked unlocks mu, waits for signalLocked, and locks mu again. Then the caller has to check
// everything again. A loop's goroutine must not wait: when that is noticed, waitLocked returns
// eventloop.ErrOnLoop.
func (w *waiter) waitLocked() error {
	w.waiting = true
	w.mu.Unlock()
	defer w.mu.Lock()
	for {
		select {
		case <-w.wake:
			w.rt.Scheduler().Resume()
			return nil
		case <-w.rt.Stalled():
			w.rt.Scheduler().Resume()
			if err := eventloop.MayWait(); err != nil {
				return w.giveUp(err)
			}
		}
	}
}

// giveUp ends a wait with err. If signalLocked has ended it in between, giveUp takes its token and
// returns nil.
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

// signalLocked ends the wait. It reports whether a goroutine waited.
func (w *waiter) signalLocked() (woke bool) {
	if !w.waiting {
		return false
	}
	w.waiting = false
	w.wake <- struct{}{}
	return true
}

// failWait records why nothing more is sent or received, and ends the wait.
func (w *waiter) failWait(err error) (woke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	return w.signalLocked()
}

// closeLocked ends the wait. No further wait begins.
func (w *waiter) closeLocked() {
	w.closed = true
	w.stopTimerLocked()
	w.signalLocked()
}

// setDeadline implements SetReadDeadline and similar methods. Not ok: it is closed.
func (w *waiter) setDeadline(t time.Time) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.setTimerLocked(t)
	}
	return !w.closed
}

// setTimerLocked makes the wait end at t.
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
		w.timer = w.rt.Scheduler().AfterFunc(left, w.handleExpiry)
		return
	}
	w.timer.Reset(left)
}

// handleExpiry handles the deadline's timer. The timer may have fired before it could be stopped:
// then the deadline was changed or removed, and handleExpiry does nothing.
func (w *waiter) handleExpiry() {
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
