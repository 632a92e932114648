package eventloop_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// runTurns runs a loop for n waits on a poller that never blocks and never has anything, each wait
// taking step, and returns the time-outs it was given.
func runTurns(t *testing.T, cfg eventloop.Config, n int, step time.Duration, prepare func(l *eventloop.Loop)) []time.Duration {
	t.Helper()
	clock := eventlooptest.NewClock(epoch)
	p := &spinPoller{record: true}
	cfg.Poller, cfg.Clock, cfg.Logger = p, clock, quiet
	l := newLoop(t, cfg)
	p.onWait = func() {
		clock.Advance(step)
		if len(p.timeouts) == n {
			l.Post(func() { panic(stopLoop{}) })
		}
	}
	if prepare != nil {
		prepare(l)
	}
	func() {
		defer func() {
			if _, ok := recover().(stopLoop); !ok {
				t.Error("the loop ended in another way")
			}
		}()
		l.Run()
	}()
	return p.timeouts[:n]
}

// stopLoop ends a loop from inside: OnPanic panics with it.
type stopLoop struct{}

func rethrow(p eventloop.Panic) { panic(p.Value) }

func TestWaitModes(t *testing.T) {
	const us = time.Microsecond
	timeouts := func(mode eventloop.WaitMode, yields *int) []time.Duration {
		cfg := eventloop.Config{Wait: mode, SpinFor: 50 * us, OnPanic: rethrow}
		return runTurns(t, cfg, 8, 10*us, func(l *eventloop.Loop) { l.SetYield(func() { *yields++ }) })
	}
	var yields int
	for i, d := range timeouts(eventloop.Block, &yields) {
		if d >= 0 {
			t.Errorf("Block: wait %d for %v, want for ever", i, d)
		}
	}
	if yields != 0 {
		t.Errorf("Block: yielded %d times without a Handoff", yields)
	}
	for i, d := range timeouts(eventloop.Busy, &yields) {
		if d != 0 {
			t.Errorf("Busy: wait %d for %v, want polls", i, d)
		}
	}
	if yields != 0 {
		t.Errorf("Busy: yielded %d times in 7 empty polls, want once in 8", yields)
	}
	for i, d := range timeouts(eventloop.Spin, &yields) {
		// 50 µs at 10 µs per poll, then it blocks.
		if polls := i < 5; polls != (d == 0) {
			t.Errorf("Spin: wait %d for %v", i, d)
		}
	}
}

// TestBusyLoopYields: a loop that is woken every millisecond yields every five.
func TestBusyLoopYields(t *testing.T) {
	yields := 0
	runTurns(t, eventloop.Config{OnPanic: rethrow}, 23, time.Millisecond, func(l *eventloop.Loop) {
		l.SetYield(func() { yields++ })
	})
	if yields != 4 {
		t.Errorf("yielded %d times in 22 ms, want 4 times", yields)
	}
}

// TestLongYields: if other goroutines take 10 ms at each yield, the loop still runs for 5 ms
// between two yields, and a timer that became due during a yield fires immediately afterwards.
func TestLongYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		l.SetYield(func() { time.Sleep(10 * time.Millisecond) })
		start := time.Now()
		var fired []int
		var timer *eventloop.Timer
		timer = l.NewTimer(func() {
			if fired = append(fired, int(time.Since(start)/time.Millisecond)); len(fired) < 13 {
				timer.Reset(time.Millisecond)
			}
		})
		timer.Reset(time.Millisecond)
		l.Start()
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []int{1, 2, 3, 4, 5, 15, 16, 17, 18, 19, 20, 30, 31}; !slices.Equal(fired, want) {
			t.Errorf("the timer fired after %v ms, want %v", fired, want)
		}
		shutdown(t, l)
	})
}

// TestSpinStartsAgainAfterWork: work at 40 µs keeps a loop that spins for 50 µs polling until 90
// µs.
func TestSpinStartsAgainAfterWork(t *testing.T) {
	const us = time.Microsecond
	cfg := eventloop.Config{Wait: eventloop.Spin, SpinFor: 50 * us, OnPanic: rethrow}
	got := runTurns(t, cfg, 12, 10*us, func(l *eventloop.Loop) { l.AfterFunc(40*us, func() {}) })
	for i, d := range got {
		if polls := i < 9; polls != (d == 0) {
			t.Errorf("wait %d for %v", i, d)
		}
	}
}

func TestHandoffYieldsOnceBeforeBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		yields := 0
		l.SetYield(func() { yields++ })
		l.Start()
		post := func(fn func()) {
			if err := l.Post(fn); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		post(func() {})
		if yields != 0 {
			t.Errorf("yielded %d times without a Handoff", yields)
		}
		post(func() { l.Handoff(); l.Handoff() })
		if yields != 1 {
			t.Errorf("yielded %d times after a turn with Handoffs, want once", yields)
		}
		post(func() {})
		if yields != 1 {
			t.Errorf("yielded %d times, want no more than for the one turn", yields)
		}
		shutdown(t, l)
	})
}

// TestHandoffYieldsBehindTheEvents: work posted by a goroutine that an event woke runs in the turn
// of that event, and the loop yields once more before it blocks.
func TestHandoffYieldsBehindTheEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		var event, posted uint64
		yields := 0
		l.SetYield(func() {
			if yields++; yields > 1 {
				return
			}
			if err := l.Post(func() { posted = l.Stats().Turns }); err != nil {
				t.Error(err)
			}
		})
		l.Start()
		if err := l.Post(func() {
			l.AfterFunc(time.Millisecond, func() {
				event = l.Stats().Turns
				l.Handoff()
			})
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if event == 0 || posted != event || yields != 2 {
			t.Errorf("the event came in turn %d, what was posted ran in turn %d, after %d yields", event, posted, yields)
		}
		shutdown(t, l)
	})
}

// TestWorkWhileFallingAsleep: work that arrives between the loop's first look at its queue and its
// announcement that it sleeps causes no wake-up; the loop has to look again.
func TestWorkWhileFallingAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		ran := false
		l.SetYield(func() {
			if err := l.Post(func() { ran = true }); err != nil {
				t.Error(err)
			}
		})
		l.Handoff()
		l.Start()
		synctest.Wait()
		if n := l.Stats().Wakeups; !ran || n != 0 {
			t.Errorf("ran %v with %d wake-ups, want it run without any", ran, n)
		}
		shutdown(t, l)
	})
}

// TestShutdownWhileFallingAsleep is the same for Shutdown.
func TestShutdownWhileFallingAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller(), Logger: quiet})
		l.SetYield(func() { time.Sleep(time.Minute) }) // Shutdown is called here
		l.Handoff()
		l.Start()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestWatchdogNamesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stalls []eventloop.Stall
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait() // also for the watchdog, whose writes are seen from here on
		}
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{
			Poller: p, StallAfter: time.Second, OnStall: func(s eventloop.Stall) { stalls = append(stalls, s) },
		})
		short := &namedRun{"short", nil}
		left := 100
		short.run = func() bool { time.Sleep(900 * time.Millisecond); left--; return left > 0 }
		long := &namedRun{"long", func() bool { time.Sleep(10 * time.Second); return false }}
		if _, err := l.Add(3, eventloop.Readable, &namedHandler{func(eventloop.Events) { time.Sleep(2 * time.Second) }, "conn-3"}); err != nil {
			t.Fatal(err)
		}
		again := 10
		if _, err := l.Add(4, eventloop.Readable, readyFunc(func(eventloop.Events) {
			time.Sleep(900 * time.Millisecond)
			if again--; again > 0 {
				p.Fire(4, eventloop.Readable)
			}
		})); err != nil {
			t.Fatal(err)
		}
		p.Fire(4, eventloop.Readable)
		l.AfterFunc(time.Minute, func() {})
		l.Start()
		pass(time.Hour) // asleep is not stalled
		if err := l.Schedule(short); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if len(stalls) != 0 {
			t.Errorf("stalls %v reported of an idle loop, or of many short turns", stalls)
		}
		if err := l.Schedule(long); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if len(stalls) != 1 || stalls[0].Holder != (eventloop.Holder{Kind: "runnable", Name: "long"}) || stalls[0].Loop != "test" {
			t.Fatalf("stalls %v, want the runnable while it stalls", stalls)
		}
		if d := stalls[0].For; d < time.Second || d > 3*time.Second/2 {
			t.Errorf("reported after %v, want 1s to 1.5s", d)
		}
		pass(time.Minute)
		p.Fire(3, eventloop.Readable)
		pass(time.Minute)
		if len(stalls) != 2 || stalls[1].Holder != (eventloop.Holder{Kind: "handler", Name: "conn-3"}) {
			t.Errorf("stalls %v, want each reported once, then the handler", stalls)
		}
		shutdown(t, l)
	})
}

func TestStallIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := newLoop(t, eventloop.Config{
			Name: "loop-5", Poller: eventlooptest.NewPoller(), StallAfter: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		l.Start()
		if err := l.Post(func() { time.Sleep(time.Minute) }); err != nil {
			t.Fatal(err)
		}
		shutdown(t, l) // ends the watchdog
		for _, want := range []string{"stalled", "loop-5", "post", "TestStallIsLogged"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q: %s", want, &log)
			}
		}
	})
}
