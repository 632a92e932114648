package eventloop

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// runTurn waits up to timeout, then does everything there is to do, once: ready fds, due timers,
// queued work, deferred work. A turn that does not wait may glance at the last fd instead of
// asking about all.
func (l *Loop) runTurn(timeout time.Duration, mayGlance bool) (worked bool, err error) {
	l.calls.turns.Add(1)
	n := 0
	if mayGlance && timeout == 0 && l.glanceAtLast() {
		n++
		l.meter.beginTurn(l.time.since(l.Now()))
	} else {
		k, err := l.pollFDs(timeout)
		if err != nil {
			return false, err
		}
		n = k
	}
	n += l.timers.fire(l.time.since(l.time.now), &l.calls)
	if l.handoff > 1 {
		l.handoff = 1
		l.yield()
	}
	n += l.runQueue()
	n += l.deferred.run(&l.queue.mu, &l.calls)
	l.calls.holder.Store(nil)
	l.meter.worked = n > 0
	return n > 0, nil
}

// pollFDs waits for ready fds and calls their handlers.
func (l *Loop) pollFDs(timeout time.Duration) (n int, err error) {
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
	l.time.read()
	l.meter.beginTurn(l.time.since(l.time.now))
	l.glancing.chooseFD(&l.fds, l.events[:n])
	if n > 0 && l.strays.mustLook() {
		l.logStrays(l.events[:n])
	}
	l.at.reports, l.at.delivered = n, 0
	l.deliverReady()
	return n, nil
}

// deliverReady calls the handlers of the ready fds.
func (l *Loop) deliverReady() {
	for l.at.delivered < l.at.reports {
		l.at.delivered++
		l.dispatchReady(l.events[l.at.delivered-1])
	}
}

// yieldPeriod is how often at least a busy loop yields before a wait. Go's monitor thread takes the
// processor from a system call of a goroutine that has run for 10 ms without passing through the
// scheduler, even if no other goroutine needs it. Then the monitor wakes up every 20 µs for some
// milliseconds, and the loop has to get a processor again when the call returns.
const yieldPeriod = 5 * time.Millisecond

// prepareWait returns how long the next wait may block. If it may block, it announces that: from
// then on queueing work wakes the loop.
func (l *Loop) prepareWait() time.Duration {
	if len(l.deferred.next) > 0 || l.cfg.Wait == Busy || l.queue.hasWork() {
		return 0
	}
	now := l.time.elapsed()
	if l.cfg.Wait == Spin && now-l.time.since(l.lastWork) < int64(l.cfg.SpinFor) {
		return 0
	}
	timeout := l.timers.until(now)
	if timeout == 0 {
		return 0
	}
	l.meter.endTurn(now)
	if l.handoff > 0 || now-l.yielded >= int64(yieldPeriod) {
		l.handoff = 0
		l.yield()
		// another goroutine may have had the processor for long
		l.yielded = l.time.elapsed()
		if timeout = l.timers.until(l.yielded); timeout == 0 {
			return 0
		}
	}
	l.asleep.Store(true)
	if l.queue.hasWork() || l.life.closing.Load() {
		l.asleep.Store(false)
		return 0
	}
	return timeout
}

// yieldEvery is after how many turns without work a polling loop yields. Yielding costs as much as
// asking the kernel.
const yieldEvery = 8

// endPolledTurn ends a turn of a polling loop. A loop that finds nothing yields the processor now
// and then. It yields immediately to goroutines that it has passed work to. Polling is worth a
// processor only while the processor has nothing else to do.
func (l *Loop) endPolledTurn(worked bool) {
	if worked {
		l.lastWork, l.idle = l.time.now, 0
		return
	}
	if l.idle++; l.handoff > 0 || l.idle%yieldEvery == 0 {
		l.handoff = 0
		l.yield()
	}
}

// runQueue runs queued work in order, at most a turn's budget of it. A Runnable that has more to
// do goes to the back of the queue, and counts as RunBudget pieces. If it counted as one, a few
// Runnables that always have more would keep the fds waiting for 64 times as long.
func (l *Loop) runQueue() (ran int) {
	for spent := 0; spent < l.cfg.TurnBudget; spent++ {
		r := l.queue.next()
		if r == nil {
			break
		}
		ran++
		l.at.ran = ran
		if l.calls.run(r) {
			l.queue.pushAgain(*r)
			spent += RunBudget - 1
		}
	}
	l.countRuns()
	return ran
}

// countRuns counts the queued work that a turn has run.
func (l *Loop) countRuns() {
	if l.at.ran > 0 {
		l.runs.Add(uint64(l.at.ran))
		l.at.ran = 0
	}
}
