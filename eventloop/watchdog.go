package eventloop

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"
)

func (l *Loop) startWatchdog() {
	w := &l.watchdog
	if l.cfg.StallAfter < 0 || w.stop != nil {
		return
	}
	w.stop, w.done, w.awake = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	go l.runWatchdog()
}

func (l *Loop) stopWatchdog() {
	if l.watchdog.stop == nil {
		return
	}
	close(l.watchdog.stop)
	<-l.watchdog.done
}

func (l *Loop) currentSight() sight { return sight{l.turns.Load(), l.holder.Load(), l.blamed.Load()} }

// runWatchdog checks a few times per StallAfter whether the loop is still in the same callback.
// While the loop has nothing to do the watchdog sleeps, so that it does not wake an idle process.
func (l *Loop) runWatchdog() {
	w := &l.watchdog
	id := goroutineID()
	l.life.watcher.Store(id)
	owners.add(id, &l.life)
	over := false
	defer func() {
		owners.remove(id, &l.life)
		if over {
			close(w.done)
		} else {
			go l.runWatchdog() // OnStall ended this goroutine
		}
	}()
	tick := time.NewTicker(max(l.cfg.StallAfter/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			over = true
			return
		case <-tick.C:
		}
		now, s := time.Now(), l.currentSight()
		switch lasted := now.Sub(w.since); {
		case s != w.last:
			w.last, w.since, w.due = s, now, l.cfg.StallAfter
		case s.holder == nil:
			tick.Stop()
			if !l.sleepWatchdog() {
				over = true
				return
			}
			tick.Reset(max(l.cfg.StallAfter/4, time.Millisecond))
		case lasted >= w.due:
			first := w.due == l.cfg.StallAfter
			w.due = 2 * lasted
			l.raiseAlarm(first, lasted)
		}
	}
}

// sleepWatchdog waits until the loop has work to do. Not ok: the loop has ended.
func (l *Loop) sleepWatchdog() (ok bool) {
	l.watchdog.asleep.Store(true)
	if l.holder.Load() != nil { // a callback has started since, and may not have seen the mark
		l.watchdog.asleep.Store(false)
		return true
	}
	select {
	case <-l.watchdog.stop:
		return false
	case <-l.watchdog.awake:
		return true
	}
}

// raiseAlarm reports that a callback occupies the loop: first to OnStall, once, then to those that
// wait on the Alarm, even if OnStall panics.
func (l *Loop) raiseAlarm(first bool, lasted time.Duration) {
	if l.cfg.Alarm != nil {
		defer l.cfg.Alarm.notifyWaiters()
	}
	if first {
		l.reportStall(lasted)
	}
}

func (l *Loop) reportStall(lasted time.Duration) {
	s := Stall{Loop: l.cfg.Name, Holder: l.Holder(), For: lasted, Stack: l.ownerStack()}
	if s.Holder.Kind == "" {
		return // the callback has just returned
	}
	if l.cfg.OnStall != nil {
		l.watchdog.reporting.Store(true)
		defer func() {
			l.watchdog.reporting.Store(false)
			if v := recover(); v != nil {
				l.log.Error("eventloop: OnStall panicked", "loop", l.cfg.Name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}()
		l.cfg.OnStall(s)
		return
	}
	s.Log(l.log)
}

// Log logs the stall as a loop does that has no Config.OnStall.
func (s Stall) Log(to *slog.Logger) {
	to.Warn("eventloop: stalled", "loop", s.Loop, "holder", s.Holder.String(), "for", s.For, "stack", string(s.Stack))
}

// stackOf is the largest number of goroutines with which the loop's stack is read. Go returns
// another goroutine's stack only together with those of all goroutines, and stops all of them for
// that time.
const stackOf = 1000

// ownerStack returns the stack of the loop's goroutine.
func (l *Loop) ownerStack() []byte {
	if runtime.NumGoroutine() > stackOf {
		return nil
	}
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	at := bytes.Index(all, fmt.Appendf(nil, "goroutine %d [", l.life.owner.Load()))
	if at < 0 {
		return nil
	}
	mine, _, _ := bytes.Cut(all[at:], []byte("\n\n"))
	return bytes.Clone(mine)
}
