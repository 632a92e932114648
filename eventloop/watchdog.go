package eventloop

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// watchdog looks for callbacks that occupy a loop for too long.
type watchdog struct {
	cfg   *Config
	log   *slog.Logger
	life  *life
	calls *callbacks

	ended     chan struct{} // closed at the loop's end; nil: not started
	done      chan struct{}
	awake     chan struct{} // holds a token when the loop has work again
	asleep    atomic.Bool   // the watchdog sleeps, as the loop had no work
	reporting atomic.Bool   // OnStall is running

	// The watchdog's own.
	last  sight
	since time.Time
	due   time.Duration // duration of the stall at the next report
}

// wakeUp ends the watchdog's sleep. Loop goroutine.
func (w *watchdog) wakeUp() {
	w.asleep.Store(false)
	select {
	case w.awake <- struct{}{}:
	default:
	}
}

func (w *watchdog) start() {
	if w.cfg.StallAfter < 0 || w.ended != nil {
		return
	}
	w.ended, w.done, w.awake = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	go w.run()
}

func (w *watchdog) stop() {
	if w.ended == nil {
		return
	}
	close(w.ended)
	<-w.done
}

// run checks a few times per StallAfter whether the loop is still in the same callback. While the
// loop has nothing to do the watchdog sleeps, so that it does not wake an idle process.
func (w *watchdog) run() {
	id := goroutineID()
	w.life.watcher.Store(id)
	goroutines.add(id, w.life)
	defer close(w.done)
	defer goroutines.remove(id, w.life)
	tick := time.NewTicker(max(w.cfg.StallAfter/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-w.ended:
			return
		case <-tick.C:
		}
		now, s := time.Now(), w.calls.sight()
		switch lasted := now.Sub(w.since); {
		case s != w.last:
			w.last, w.since, w.due = s, now, w.cfg.StallAfter
		case s.holder == nil:
			tick.Stop()
			if !w.sleep() {
				return
			}
			tick.Reset(max(w.cfg.StallAfter/4, time.Millisecond))
		case lasted >= w.due:
			first := w.due == w.cfg.StallAfter
			w.due = 2 * lasted
			w.raiseAlarm(first, lasted)
		}
	}
}

// sleep waits until the loop has work to do. Not ok: the loop has ended.
func (w *watchdog) sleep() (ok bool) {
	w.asleep.Store(true)
	if w.calls.holder.Load() != nil { // a callback that started since may not have seen the mark
		w.asleep.Store(false)
		return true
	}
	select {
	case <-w.ended:
		return false
	case <-w.awake:
		return true
	}
}

// raiseAlarm reports that a callback occupies the loop: first to OnStall, once, then to those that
// wait on the Alarm, even if OnStall panics.
func (w *watchdog) raiseAlarm(first bool, lasted time.Duration) {
	if w.cfg.Alarm != nil {
		defer w.cfg.Alarm.notifyWaiters()
	}
	if first {
		w.reportStall(lasted)
	}
}

func (w *watchdog) reportStall(lasted time.Duration) {
	s := Stall{Loop: w.cfg.Name, Holder: w.calls.currentHolder(), For: lasted, Stack: stackOf(w.life.goroutine.Load())}
	if s.Holder.Kind == "" {
		return // the callback has just returned
	}
	if w.cfg.OnStall != nil {
		w.reporting.Store(true)
		defer func() {
			w.reporting.Store(false)
			if v := recover(); v != nil {
				w.log.Error("eventloop: OnStall panicked", "loop", w.cfg.Name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}()
		w.cfg.OnStall(s)
		return
	}
	s.Log(w.log)
}

// Log logs the stall as a loop does that has no Config.OnStall.
func (s Stall) Log(to *slog.Logger) {
	to.Warn("eventloop: stalled", "loop", s.Loop, "holder", s.Holder.String(), "for", s.For, "stack", string(s.Stack))
}

// maxGoroutines is the largest number of goroutines with which the loop's stack is read. Go returns
// another goroutine's stack only together with those of all goroutines, and stops all of them for
// that time.
const maxGoroutines = 1000

// stackOf returns the stack of a goroutine.
func stackOf(id uint64) []byte {
	if runtime.NumGoroutine() > maxGoroutines {
		return nil
	}
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	at := bytes.Index(all, fmt.Appendf(nil, "goroutine %d [", id))
	if at < 0 {
		return nil
	}
	mine, _, _ := bytes.Cut(all[at:], []byte("\n\n"))
	return bytes.Clone(mine)
}
