package eventloop

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// runCallback runs a callback. All callbacks are run here. It records which one runs, and recovers
// its panics.
func (l *Loop) runCallback(r *Runnable) (more bool) {
	l.holder.Store(r)
	if l.blamed.Load() != nil {
		l.blamed.Store(nil)
	}
	if l.watchdog.asleep.Load() {
		l.watchdog.wakeUp()
	}
	defer l.recoverPanic(r)
	return (*r).Run(RunBudget)
}

// recoverPanic recovers and reports a callback's panic.
func (l *Loop) recoverPanic(r *Runnable) {
	value := recover()
	if value != nil {
		l.reportPanic(r, value, debug.Stack())
	}
}

func (l *Loop) reportPanic(r *Runnable, value any, stack []byte) {
	l.panics.Add(1)
	h, who := identifyRunnable(*r)
	p := Panic{Loop: l.cfg.Name, Holder: h, Who: who, Value: value, Stack: stack}
	if l.cfg.OnPanic != nil {
		l.at.reporting = true
		l.cfg.OnPanic(p)
		l.at.reporting = false
		return
	}
	p.Log(l.log)
}

// Log logs the panic as a loop does that has no Config.OnPanic.
func (p Panic) Log(to *slog.Logger) {
	to.Error("eventloop: callback panicked", "loop", p.Loop, "holder", p.Holder.String(),
		// a logger may keep the line, and the value may change
		"panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
}

// Blame attributes the current callback to r. Until another callback runs, the watchdog names r in
// its place. With nil it names the callback itself again. Blame returns the previous value, so that
// the caller can restore it. *r must not change afterwards. Loop goroutine. Blaming the same r
// again costs next to nothing.
func (l *Loop) Blame(r *Runnable) (was *Runnable) {
	if was = l.blamed.Load(); was != r {
		l.blamed.Store(r)
	}
	return was
}

// Holder names the callback that runs now. A LoopName that does not return delays it by a second.
// Any goroutine may call it: the value that holder points to is written before it is published, or
// under the queue's lock.
func (l *Loop) Holder() Holder {
	l.queue.mu.Lock()
	var r Runnable
	if p := l.holder.Load(); p != nil {
		if b := l.blamed.Load(); b != nil {
			p = b
		}
		r = *p
	}
	l.queue.mu.Unlock()
	if r == nil && l.watchdog.reporting.Load() {
		return Holder{"watchdog", functionName(l.cfg.OnStall)} // the loop's end waits for it
	}
	h, _ := identifyRunnable(r)
	return h
}
