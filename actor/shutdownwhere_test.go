package actor

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// A Shutdown in OnStall would wait for the loop, whose end waits for OnStall. It is refused before
// it has begun, and the runtime goes on.
func TestShutdownInOnStall(t *testing.T) {
	var far *Runtime
	errs := make(chan error, 2)
	inWorld(t, states.IWARP, func(w *world) {
		errs = make(chan error, 2) // the bubble's
		far = w.far
		w.onLoop(w.far, func(*loop) { time.Sleep(3 * time.Second) })
		is(w, <-errs, eventloop.ErrOnLoop)
		far = nil
		w.connect()
	}, Config{Loops: []eventloop.Config{{OnStall: func(eventloop.Stall) {
		if far != nil {
			errs <- far.Shutdown(context.Background())
		}
	}}}})
}

// The wait for a logger that waits for the Shutdown that waits for it, or forever, is bounded.
func TestShutdownInALogger(t *testing.T) {
	for _, how := range []string{"first", "second", "never returns"} {
		t.Run(how, func(t *testing.T) {
			var rt *Runtime
			var logged, let chan struct{}
			inWorld(t, states.IWARP, func(w *world) {
				rt, logged, let = w.rt, make(chan struct{}), make(chan struct{})
				w.rt.Logger().Warn("the end")
				if how != "first" {
					time.Sleep(time.Second)
				}
				var err error
				took := elapsed(func() { err = w.rt.Shutdown(context.Background()) })
				if err == nil || !strings.Contains(err.Error(), "logger") || took > time.Minute {
					w.Errorf("after %v: %v, want that the logger does not return", took, err)
				}
				close(let)
				<-logged
			}, Config{Logger: slog.New(logTo(func(rec slog.Record) {
				if rec.Message != "the end" {
					return
				}
				if how == "never returns" {
					<-let
				} else {
					_ = rt.Shutdown(context.Background())
				}
				close(logged)
			}))})
		})
	}
}

// A logger that is slow, and goes on, is waited for.
func TestShutdownWaitsForASlowLogger(t *testing.T) {
	const most = 10 // of one text
	lines := 0
	inWorld(t, states.IWARP, func(w *world) {
		lines = 0
		for range most {
			w.rt.Logger().Warn("slow")
		}
		if err := w.rt.Shutdown(context.Background()); err != nil || lines != most {
			w.Errorf("%v, after %d lines", err, lines)
		}
	}, Config{Logger: slog.New(logTo(func(rec slog.Record) {
		if rec.Message == "slow" {
			time.Sleep(3 * time.Second)
			lines++
		}
	}))})
}
