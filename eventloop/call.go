package eventloop

import (
	"fmt"
	"runtime/debug"
)

// call is the one way into other people's code: it says who runs, and it survives their panics.
func (l *Loop) call(r *Runnable) (more bool) {
	l.holder.Store(r)
	if l.blamed.Load() != nil {
		l.blamed.Store(nil)
	}
	if l.watchdog.asleep.Load() {
		l.watchdog.rouse()
	}
	defer l.recovered(r)
	return (*r).Run(RunBudget)
}

// recovered is deferred around every callback.
func (l *Loop) recovered(r *Runnable) {
	value := recover()
	if value != nil {
		l.report(r, value, debug.Stack())
	}
}

func (l *Loop) report(r *Runnable, value any, stack []byte) {
	l.panics.Add(1)
	h, who := describe(*r)
	p := Panic{Loop: l.cfg.Name, Holder: h, Who: who, Value: value, Stack: stack}
	if l.cfg.OnPanic != nil {
		l.at.reporting = true
		l.cfg.OnPanic(p)
		l.at.reporting = false
		return
	}
	l.log.Error("eventloop: callback panicked", "loop", p.Loop, "holder", p.Holder.String(),
		// a logger may keep the line, and value may change
		"panic", fmt.Sprint(value), "stack", string(p.Stack))
}

// Blame says that the callback that runs works for r from now on, until another one runs: the
// watchdog names r instead. nil means for itself. Blame returns whom the watchdog would have
// named, so that the caller can restore it. What r points to must not change any more. Loop
// goroutine. To blame the same one again costs next to nothing.
func (l *Loop) Blame(r *Runnable) (was *Runnable) {
	if was = l.blamed.Load(); was != r {
		l.blamed.Store(r)
	}
	return was
}

// currentHolder names who has the loop. Any goroutine: what holder points to is written before it
// is published, or under the queue's lock.
func (l *Loop) currentHolder() Holder {
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
	h, _ := describe(r)
	return h
}
