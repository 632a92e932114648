package journal

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// TestLogIsLimited: of one text only so many lines are written, and the next one states how many
// were dropped. Other texts do not wait for it, and lines below Info are written in any case.
func TestLogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var w Journal
		l := w.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))).With("of", "the test")
		lines := func(what string) int { return strings.Count(log.String(), what) }
		for range 1000 {
			l.Warn("a peer broke the protocol")
		}
		l.Warn("another one")
		synctest.Wait()
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
		synctest.Wait()
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

// TestLogHasABound: lines that a logger does not take are kept up to a bound, whatever the number
// of texts, and are counted.
func TestLogHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		written, unlogged := 0, uint64(0)
		var w Journal
		l := w.Logger(slog.New(logTo(func(rec slog.Record) {
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
		synctest.Wait() // the logger has the first line, and does not return
		if len(w.texts) > textsKnown+1 || len(w.queue) > linesInQueue {
			t.Errorf("%d texts are known, %d lines wait", len(w.texts), len(w.queue))
		}
		close(open)
		synctest.Wait()
		time.Sleep(linesEvery)
		l.Warn("one more, of the texts that are counted as one")
		synctest.Wait()
		if got := written + int(unlogged); got != texts*each+1 {
			t.Errorf("%d written and %d counted, want %d together", written, unlogged, texts*each+1)
		}
	})
}

// TestLoggerLeaves: a logger that panics or ends its goroutine costs the line that it was given.
func TestLoggerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var w Journal
		l := w.Logger(slog.New(logTo(func(rec slog.Record) {
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
		if err := w.Flush(t.Context()); err != nil || strings.Join(got, " ") != "one two" {
			t.Errorf("wrote %v, %v", got, err)
		}
		l.Error("three")
		if err := w.Flush(t.Context()); err != nil || len(got) != 3 {
			t.Errorf("wrote %v, %v", got, err)
		}
	})
}
