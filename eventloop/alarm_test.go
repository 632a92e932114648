package eventloop_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// The watchdog is there unless it is not wanted, shows where the loop stands, and sleeps when the
// loop does.
func TestWatchdogByDefault(t *testing.T) {
	for _, off := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			cfg := eventloop.Config{Poller: eventlooptest.NewPoller(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
			if off {
				cfg.StallAfter = -1
			}
			l := newLoop(t, cfg)
			l.Start()
			for range 3 {
				time.Sleep(time.Minute)
				synctest.Wait()
				if l.WatchdogSleeps() == off {
					t.Errorf("beside an idle loop the watchdog sleeps: %v", !off)
				}
				if err := l.Post(func() { stand(10 * time.Second) }); err != nil {
					t.Fatal(err)
				}
			}
			shutdown(t, l)
			if n := strings.Count(log.String(), "stalled"); off && n != 0 || !off && (n != 3 || !strings.Contains(log.String(), "stand(")) {
				t.Errorf("%d stalls were logged: %s", n, &log)
			}
		})
	}
}

// stand is the function that the stack names.
//
//go:noinline
func stand(d time.Duration) { time.Sleep(d) }

// An Alarm rings when a callback stalls, and again while it goes on, for late waiters. Only a
// callback of a loop may not wait.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := eventloop.NewAlarm()
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller(), Logger: quiet, Alarm: a})
		l.Start()
		done := make(chan error, 2)
		wait := func() {
			for {
				<-a.C()
				if err := eventloop.MayWait(); err != nil {
					done <- err
					return
				}
			}
		}
		for _, busy := range []time.Duration{0, 10 * time.Second} {
			begin := time.Now()
			if err := l.Post(func() { time.Sleep(busy); wait() }); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, eventloop.ErrOnLoop) {
				t.Errorf("the loop's goroutine gets %v", err)
			}
			if took := time.Since(begin); took > 2*busy+2*time.Second {
				t.Errorf("an answer after %v, having worked for %v", took, busy)
			}
		}
		if err := eventloop.MayWait(); err != nil {
			t.Errorf("another goroutine gets %v", err)
		}
		shutdown(t, l)
	})
}
