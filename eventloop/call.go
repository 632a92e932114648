package eventloop

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// callbacks runs a loop's callbacks. It records which one runs, and recovers its panics.
type callbacks struct {
	cfg      *Config
	log      *slog.Logger
	watchdog *watchdog
	mu       *sync.Mutex // the queue's: the value that holder points to is written under it

	reporting bool // OnPanic is running

	// For any goroutine to read.
	turns  atomic.Uint64
	holder atomic.Pointer[Runnable] // current callback; nil while waiting
	blamed atomic.Pointer[Runnable] // set by Blame; nil: the holder itself
	panics atomic.Uint64
}

// run runs a callback. All callbacks are run here.
func (c *callbacks) run(r *Runnable) (more bool) {
	c.holder.Store(r)
	if c.blamed.Load() != nil {
		c.blamed.Store(nil)
	}
	if c.watchdog.asleep.Load() {
		c.watchdog.wakeUp()
	}
	defer c.recoverPanic(r)
	return (*r).Run(RunBudget)
}

// recoverPanic recovers and reports a callback's panic.
func (c *callbacks) recoverPanic(r *Runnable) {
	value := recover()
	if value != nil {
		c.reportPanic(r, value, debug.Stack())
	}
}

func (c *callbacks) reportPanic(r *Runnable, value any, stack []byte) {
	c.panics.Add(1)
	h, who := identifyRunnable(*r)
	p := Panic{Loop: c.cfg.Name, Holder: h, Who: who, Value: value, Stack: stack}
	if c.cfg.OnPanic != nil {
		c.reporting = true
		c.cfg.OnPanic(p)
		c.reporting = false
		return
	}
	p.Log(c.log)
}

// sight is the watchdog's view of the current callback. A call is identified by its turn and the
// place of its Runnable. Only deferred work that defers itself, and glances, can occur in one place
// twice in a turn; all glances but the last found nothing.
type sight struct {
	turn           uint64
	holder, blamed *Runnable
}

func (c *callbacks) sight() sight { return sight{c.turns.Load(), c.holder.Load(), c.blamed.Load()} }

// answerable returns the callback that a report names: the one that Blame has set, or else the
// current one; nil for none.
func (c *callbacks) answerable() *Runnable {
	r := c.holder.Load()
	if b := c.blamed.Load(); r != nil && b != nil {
		return b
	}
	return r
}

// currentHolder names the callback that runs now. Any goroutine.
func (c *callbacks) currentHolder() Holder {
	c.mu.Lock()
	var r Runnable
	if p := c.answerable(); p != nil {
		r = *p
	}
	c.mu.Unlock()
	if r == nil && c.watchdog.reporting.Load() {
		return Holder{"watchdog", functionName(c.cfg.OnStall)} // the loop's end waits for it
	}
	h, _ := identifyRunnable(r)
	return h
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
	if was = l.calls.blamed.Load(); was != r {
		l.calls.blamed.Store(r)
	}
	return was
}

// Holder names the callback that runs now. Any goroutine may call it.
func (l *Loop) Holder() Holder { return l.calls.currentHolder() }
