package eventloop

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// deferRounds bounds how often a turn's end may defer to itself.
const deferRounds = 8

// Start runs the loop on a goroutine of its own. What Run would return is logged and told by Shutdown. A loop that was shut down
// already, or is being, stays so; starting one that runs is a bug and panics.
func (l *Loop) Start() {
	if err := l.claim(running); err != nil {
		if errors.Is(err, ErrClosed) {
			return
		}
		panic(l.opError("run", -1, err))
	}
	go l.runLoop() //nolint:errcheck // finish has logged it
}

// Run runs the loop on the calling goroutine, which becomes the loop's, until Shutdown. An error
// means that the loop ended because waiting failed (never for EINTR). ErrRunning when somebody runs
// it already, ErrClosed once Shutdown has begun.
func (l *Loop) Run() error {
	if err := l.claim(running); err != nil {
		return l.opError("run", -1, err)
	}
	return l.runLoop()
}

func (l *Loop) runLoop() (err error) {
	l.startWatchdog()
	return l.goOn()
}

// work is the loop's turns, until Shutdown.
func (l *Loop) work() error {
	if !l.life.closing.Load() {
		l.tellReady() // of a turn that was broken off
	}
	for !l.life.closing.Load() {
		worked, err := l.turn(l.park(), l.cfg.Wait != Block)
		if err != nil {
			l.runLast()
			return err
		}
		if l.cfg.Wait != Block {
			l.polled(worked)
		}
	}
	l.drain()
	return nil
}

// turn waits up to timeout, then does everything there is to do, once: ready fds, due timers, queued work, deferred work. A turn that
// does not wait may glance at the last fd instead of asking about all.
func (l *Loop) turn(timeout time.Duration, mayGlance bool) (worked bool, err error) {
	l.turns.Add(1)
	n := 0
	if mayGlance && timeout == 0 && l.glance() {
		n++
	} else {
		k, err := l.ask(timeout)
		if err != nil {
			return false, err
		}
		n = k
	}
	l.Now()
	n += l.fireTimers()
	n += l.runQueue()
	n += l.runDeferred()
	l.holder.Store(nil)
	return n > 0, nil
}

// ask waits for ready fds and tells their handlers.
func (l *Loop) ask(timeout time.Duration) (n int, err error) {
	n, err = l.poller.Wait(l.events, timeout)
	if timeout != 0 {
		l.asleep.Store(false)
	}
	if err != nil {
		if !errors.Is(err, unix.EINTR) {
			return 0, l.opError("wait", -1, err)
		}
		n = 0
	}
	l.now, l.stale = l.clock.Now(), false
	l.glancing.found(l, l.events[:n])
	if n > 0 {
		if l.looked++; l.looked%lookEvery == 0 {
			l.findStrays(l.events[:n])
		}
	}
	l.at.reports, l.at.told = n, 0
	l.tellReady()
	return n, nil
}

// tellReady tells the handlers of what is ready.
func (l *Loop) tellReady() {
	for l.at.told < l.at.reports {
		l.at.told++
		l.dispatch(l.events[l.at.told-1])
	}
}

// park decides how long the next wait may block, and if it may, announces it: from here on whoever queues work wakes the loop.
func (l *Loop) park() time.Duration {
	if len(l.deferred) > 0 || l.cfg.Wait == Busy || l.queue.pending() {
		return 0
	}
	if l.cfg.Wait == Spin && l.clock.Now().Sub(l.lastWork) < l.cfg.SpinFor {
		return 0
	}
	timeout := l.untilTimer()
	if timeout == 0 {
		return 0
	}
	if l.handoff {
		l.handoff = false
		l.yield()
	}
	l.asleep.Store(true)
	if l.queue.pending() || l.life.closing.Load() {
		l.asleep.Store(false)
		return 0
	}
	return timeout
}

// yieldEvery is after how many turns without work a polling loop yields. Yielding costs as much as asking the kernel.
const yieldEvery = 8

// polled ends a turn of a polling loop. One that finds nothing lets others have the processor now and then, and those it has given
// work to at once: polling is worth while only when it would be idle.
func (l *Loop) polled(worked bool) {
	if worked {
		l.lastWork, l.idle = l.now, 0
		return
	}
	if l.idle++; l.handoff || l.idle%yieldEvery == 0 {
		l.handoff = false
		l.yield()
	}
}

// runQueue runs queued work in order, at most a turn's budget of it. Work that has more to do goes
// to the back. It has used up its own budget, and counts for as much: else a few that never end
// would keep the fds waiting for a turn's budget of theirs.
func (l *Loop) runQueue() (ran int) {
	for spent := 0; spent < l.cfg.TurnBudget; spent++ {
		r := l.queue.next()
		if r == nil {
			break
		}
		ran++
		if l.call(r) {
			l.queue.again(*r)
			spent += RunBudget - 1
		}
	}
	if ran > 0 {
		l.runs.Add(uint64(ran))
	}
	return ran
}

// runDeferred runs what the turn deferred. It is moved to flushing under the queue's lock, so that the watchdog may read it there
// while Defer appends elsewhere without one.
func (l *Loop) runDeferred() (ran int) {
	for round := 0; round < deferRounds && len(l.deferred) > 0; round++ {
		l.queue.mu.Lock()
		clear(l.flushing)
		l.flushing = append(l.flushing[:0], l.deferred...)
		l.queue.mu.Unlock()
		clear(l.deferred)
		l.deferred = l.deferred[:0]
		for i := range l.flushing {
			l.at.flushed = i + 1
			if l.call(&l.flushing[i]) {
				l.deferred = append(l.deferred, l.flushing[i])
			}
		}
		ran += len(l.flushing)
	}
	return ran
}

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

// Panic is a callback's panic, or its runtime.Goexit, as reported to Config.OnPanic.
type Panic struct {
	Loop   string
	Holder Holder // what panicked
	Who    any    // the Handler or Runnable itself; nil for a function
	Value  any    // what recover returned; for runtime.Goexit an error that says so
	Stack  []byte // of the panic
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
	p := Panic{Loop: l.cfg.Name, Holder: describe(*r), Who: who(*r), Value: value, Stack: stack}
	if l.cfg.OnPanic != nil {
		l.at.reporting = true
		l.cfg.OnPanic(p)
		l.at.reporting = false
		return
	}
	l.log.Error("eventloop: callback panicked", "loop", p.Loop, "holder", p.Holder.String(),
		"panic", fmt.Sprint(value), "stack", string(p.Stack)) // a logger may keep the line, and value may change
}
