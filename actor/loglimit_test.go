package actor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
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

// TestLogIsLimited: of one text only so many lines are written, and the next one says how many
// were not. Other texts do not wait for it, and what is below Info is written in any case.
func TestLogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var w journal
		l := w.logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))).With("of", "the test")
		lines := func(what string) int { return strings.Count(log.String(), what) }
		for range 1000 {
			l.Warn("a peer broke the protocol")
		}
		l.Warn("another one")
		settle()
		if n := lines("msg=\"a peer broke the protocol\""); n != linesOfAText || lines("another one") != 1 {
			t.Errorf("%d lines of one text and %d of another, want %d and 1", n, lines("another one"), linesOfAText)
		}
		if lines("unlogged=") != 0 || lines("of=\"the test\"") != linesOfAText+1 {
			t.Errorf("logged %s", &log)
		}
		log.Reset()
		time.Sleep(linesEvery)
		for range 3 {
			l.Warn("a peer broke the protocol")
		}
		settle()
		if lines("protocol") != 3 || lines("unlogged=990") != 1 || lines("unlogged=") != 1 {
			t.Errorf("logged %s, want how many were not, once", &log)
		}
		log.Reset()
		for range 1000 {
			l.Debug("moved")
		}
		if lines("moved") != 1000 {
			t.Errorf("%d of 1000 lines below Info, before any other goroutine ran", lines("moved"))
		}
	})
}

// TestLogHasABound: what a logger does not take is kept up to a bound, whatever the number of
// texts, and is counted.
func TestLogHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		written, unlogged := 0, uint64(0)
		var w journal
		l := w.logger(slog.New(logTo(func(rec slog.Record) {
			<-open
			written++
			rec.Attrs(func(a slog.Attr) bool {
				unlogged += a.Value.Uint64()
				return true
			})
		})))
		const texts, each = 1000, 2
		for i := range texts {
			for range each {
				l.Warn(strings.Repeat("x", i+1))
			}
		}
		settle() // the logger has the first line, and does not return
		if len(w.texts) > textsKnown+1 || len(w.queue) > linesInQueue {
			t.Errorf("%d texts are known, %d lines wait", len(w.texts), len(w.queue))
		}
		close(open)
		settle()
		time.Sleep(linesEvery)
		l.Warn("one more, of the texts that are counted as one")
		settle()
		if got := written + int(unlogged); got != texts*each+1 {
			t.Errorf("%d written and %d counted, want %d together", written, unlogged, texts*each+1)
		}
	})
}

// TestLoggerLeaves: a logger that panics or ends its goroutine costs the line that it was given.
func TestLoggerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var w journal
		l := w.logger(slog.New(logTo(func(rec slog.Record) {
			switch rec.Message {
			case "panic":
				panic("for the test")
			case "Goexit":
				runtime.Goexit()
			}
			got = append(got, rec.Message)
		})))
		for _, text := range []string{"panic", "one", "Goexit", "two"} {
			l.Error(text)
		}
		if err := w.flush(t.Context()); err != nil || strings.Join(got, " ") != "one two" {
			t.Errorf("wrote %v, %v", got, err)
		}
		l.Error("three")
		if err := w.flush(t.Context()); err != nil || len(got) != 3 {
			t.Errorf("wrote %v, %v", got, err)
		}
	})
}

// TestBlockedLogger: a logger that does not return stops nobody: connections go on, on the loop
// that logs too. Shutdown waits for what was logged, and names the logger when its time is over.
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
		if err := w.rt.journal.flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "logger") {
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

// TestLoopsLogger: the lines of a loop with a logger of its own, and of all that runs on it, are
// limited likewise.
func TestLoopsLogger(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.onLoop(w.rt, func(l *loop) {
			if _, limited := l.el.Logger().Handler().(*lineHandler); !limited {
				w.Errorf("the loop logs to %T", l.el.Logger().Handler())
			}
		})
	})
}
