package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// crew is a process with a runtime. It counts the goroutines for which its program waits.
type crew struct {
	p    *world.Process
	rt   *rdma.Runtime
	busy int
}

// newCrew opens a process's runtime (openRuntime). nil: the process has ended.
func (e *Env) newCrew(p *world.Process) *crew {
	if rt := e.openRuntime(p); rt != nil {
		return &crew{p: p, rt: rt}
	}
	return nil
}

// startGoroutine runs fn on a goroutine of the process.
func (c *crew) startGoroutine(fn func()) {
	c.busy++
	c.p.Go(func() {
		fn()
		c.busy--
	})
}

// performAt performs an operation of the workload at its time, on a goroutine. begun is set then:
// the program's next process does not repeat the operation.
func (c *crew) performAt(at time.Duration, begun *bool, do func()) {
	if *begun {
		return
	}
	c.startGoroutine(func() {
		c.p.Sleep(beginning + at - c.p.World().Now())
		*begun = true
		do()
	})
}

// waitUntil waits until done is true. It polls after step, and then less and less often.
func (c *crew) waitUntil(step time.Duration, done func() bool) {
	for most := 32 * step; !done(); step = min(step+step/8, most) {
		c.p.Sleep(step)
	}
}

// isIdle reports whether all goroutines have ended.
func (c *crew) isIdle() bool { return c.busy == 0 }

// openRuntime opens a process's runtime, with the limits that the packages above connections need.
// nil: the process has ended.
func (e *Env) openRuntime(p *world.Process) *rdma.Runtime {
	cfg := e.Config
	memory := 0
	if k := e.World.Kind(); k == world.TwinSoftRoCE || k == world.TwinSIW {
		memory = 64 << 20 // each connection has all its receives from its beginning
	}
	for _, l := range []struct {
		limit *int
		least int
	}{
		{&cfg.Limits.Connections, 200},
		{&cfg.Limits.SendQueue, 65},
		{&cfg.Limits.Mailbox, 256},
		{&cfg.Limits.ReceiveMemory, memory},
		{&cfg.Limits.SendMemory, memory},
	} {
		if *l.limit > 0 {
			*l.limit = max(*l.limit, l.least)
		}
	}
	rt, _ := e.openWith(p, cfg)
	return rt
}

// failWorld calls World.Fail with the workload's name.
func (e *Env) failWorld(format string, args ...any) {
	e.World.Fail("%s: %s", e.Name, fmt.Sprintf(format, args...))
}

// oneOf draws one of several values.
func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// beginning is when the first operations may begin: the listeners are ready then.
const beginning = time.Second

// within draws a time.
func (d Draw) within(most time.Duration) time.Duration {
	return time.Duration(d.Int64N(int64(max(most, 1))))
}

// upTo draws a time, which may be the longest.
func (d Draw) upTo(most time.Duration) time.Duration { return d.within(most + 1) }

// duration draws a time from first to 2^(doublings+1) times as much. Each order of magnitude is
// equally likely.
func (d Draw) duration(first time.Duration, doublings int) time.Duration {
	t := first << d.IntN(doublings+1)
	return t + d.within(t)
}

// size draws the length of a message, from 8 bytes to 8 << (doublings + 1). Each order of magnitude
// is equally likely.
func (d Draw) size(doublings int) int { return int(d.duration(8, doublings)) }
