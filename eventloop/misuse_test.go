package eventloop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// wildName is work whose LoopName does something else.
type wildName struct {
	run func()
}

func (w *wildName) LoopName() string { panic("in LoopName") }
func (w *wildName) Run(int) bool     { w.run(); return false }

// A LoopName that panics costs its owner the name, and has no other effect: neither on the loop
// that reports a panic, nor on the watchdog, nor on a Shutdown.
func TestWildNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var named []string
		l := newLoop(t, eventloop.Config{
			Poller:  eventlooptest.NewPoller(),
			OnPanic: func(p eventloop.Panic) { named = append(named, p.Holder.Name) },
			OnStall: func(s eventloop.Stall) { named = append(named, s.Holder.Name) },
		})
		l.Start()
		for _, run := range []func(){func() { panic("in Run") }, func() { time.Sleep(time.Minute) }} {
			if err := l.Schedule(&wildName{run}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := l.Shutdown(ctx)
		var stuck *eventloop.ShutdownError
		if !errors.As(err, &stuck) {
			t.Fatalf("Shutdown: %v", err)
		}
		shutdown(t, l)
		if named = append(named, stuck.Holder.Name); len(named) != 3 {
			t.Errorf("%d reports, want a panic, a stall and a Shutdown that ran out of time", len(named))
		}
		for _, s := range named {
			if !strings.HasPrefix(s, "*eventloop_test.wildName") {
				t.Errorf("named %q, want the type", s)
			}
		}
	})
}

// An OnStall that panics or shuts the loop down costs the loop nothing, and the
// next stall is reported.
func TestWildOnStall(t *testing.T) {
	for _, how := range []string{"panics", "shuts down"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var l *eventloop.Loop
				reported := 0
				alarm := eventloop.NewAlarm()
				l = newLoop(t, eventloop.Config{
					Poller: eventlooptest.NewPoller(), Alarm: alarm, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					OnStall: func(eventloop.Stall) {
						reported++
						switch how {
						case "panics":
							panic("in OnStall")
						default:
							if err := l.Shutdown(context.Background()); !errors.Is(err, eventloop.ErrOnLoop) {
								t.Errorf("Shutdown in OnStall: %v, want ErrOnLoop", err)
							}
							if err := eventloop.MayWait(); !errors.Is(err, eventloop.ErrOnLoop) {
								t.Errorf("MayWait in OnStall: %v, want ErrOnLoop", err)
							}
						}
					},
				})
				l.Start()
				for n := 1; n <= 2; n++ {
					c := alarm.C()
					on(t, l, func() { time.Sleep(10 * time.Second) })
					synctest.Wait()
					if reported != n {
						t.Errorf("reported %d times after %d stalls", reported, n)
					}
					select {
					case <-c:
					default:
						t.Error("the alarm was not rung")
					}
				}
				shutdown(t, l)
				if got := strings.Contains(log.String(), "OnStall panicked"); got != (how == "panics") {
					t.Errorf("the log: %s", &log)
				}
			})
		})
	}
}

// A Shutdown that runs out of time while OnStall does not return reports that.
func TestOnStallThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p, OnStall: func(eventloop.Stall) { <-release }})
		l.Start()
		on(t, l, func() { time.Sleep(10 * time.Second) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Shutdown(ctx)
		var stuck *eventloop.ShutdownError
		if !errors.As(err, &stuck) || stuck.Holder.Kind != "watchdog" || !strings.Contains(stuck.Holder.Name, "TestOnStallThatBlocks") {
			t.Errorf("Shutdown: %v, want that OnStall occupies it", err)
		}
		if !p.Closed() {
			t.Error("the poller waits for OnStall")
		}
		close(release)
		shutdown(t, l)
	})
}

// OnPanic may use the loop like a callback.
func TestOnPanicMayUseTheLoop(t *testing.T) {
	var l *eventloop.Loop
	ran := make(chan string, 3)
	l = newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller(), OnPanic: func(eventloop.Panic) {
		if err := l.Shutdown(context.Background()); !errors.Is(err, eventloop.ErrOnLoop) {
			t.Errorf("Shutdown: %v, want ErrOnLoop", err)
		}
		if err := l.Run(); !errors.Is(err, eventloop.ErrRunning) {
			t.Errorf("Run: %v, want ErrRunning", err)
		}
		work := &runFunc{func(int) bool { ran <- "scheduled"; return false }}
		if err := errors.Join(l.Post(func() { ran <- "post" }), l.Schedule(work)); err != nil {
			t.Error(err)
		}
		l.AfterFunc(0, func() { ran <- "timer" })
	}})
	start(t, l)
	if err := l.Post(func() { panic("once") }); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{<-ran: true, <-ran: true, <-ran: true}
	if len(got) != 3 {
		t.Errorf("ran %v", got)
	}
}
