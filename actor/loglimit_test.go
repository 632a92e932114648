package actor

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/journal"
)

// logTo is a handler whose Handle is a function of the test's.
type logTo func(rec slog.Record)

func (logTo) Enabled(context.Context, slog.Level) bool { return true }
func (f logTo) Handle(_ context.Context, rec slog.Record) error {
	f(rec)
	return nil
}
func (f logTo) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f logTo) WithGroup(string) slog.Handler      { return f }

// TestBlockedLogger: a logger that does not return blocks no connection, on the loop that logs too.
// Shutdown waits for the logged lines, and names the logger when its time is over.
func TestBlockedLogger(t *testing.T) {
	open := make(chan struct{})
	wrote := 0
	onFlavors(t, func(w *world) {
		open, wrote = make(chan struct{}), 0
		p := w.connect()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		remote := actor.NewPID("elsewhere:1", "someone")
		// an owner that cannot be notified is logged
		w.onLoop(w.rt, func(*loop) { w.rt.CreateID(remote, IDConfig{}) })
		p.client.send(p.c, NewSend([]byte("hello")))
		until[*Received](p.server)
		if err := w.rt.journal.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "logger") {
			w.Errorf("%v, want that the logger does not return", err)
		}
		go func() {
			time.Sleep(time.Second)
			close(open)
		}()
		if err := w.rt.Shutdown(context.Background()); err != nil || wrote == 0 {
			w.Errorf("%v, and %d lines are written", err, wrote)
		}
	}, Config{Logger: slog.New(logTo(func(rec slog.Record) {
		if rec.Level >= slog.LevelInfo {
			<-open
			wrote++
		}
	}))})
}

// TestLoopsLogger: the lines of a loop with a separate logger, and of all actors on it, are limited
// likewise.
func TestLoopsLogger(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.onLoop(w.rt, func(l *loop) {
			if _, limited := l.el.Logger().Handler().(*journal.Handler); !limited {
				w.Errorf("the loop logs to %T", l.el.Logger().Handler())
			}
		})
	})
}
