// Package journal writes lines of the log for code that must not wait for a logger, and bounds how
// many lines of one text are written.
package journal

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/internal/sched"
)

// A peer, or user code, can cause a line of the log as often as it likes, and a logger may be as
// slow as a pipe without a reader. So only linesOfAText lines of one text are written in
// linesEvery, and the next line of that text states how many were dropped. Logging does not wait
// for the logger: a goroutine that lasts as long as there are lines writes them, in order. A line
// that finds no room in the queue counts as not written. The texts of lines are constants, so that
// none hides another.
//
// Lines below Info are written immediately, by the goroutine that logs them, and none is dropped:
// they are enabled to find a fault.

const (
	linesOfAText = 10               // are written
	linesEvery   = 10 * time.Second // in this time
	linesInQueue = 1000             // wait for the logger
	textsKnown   = 100              // the others are counted as one
	lineWait     = 5 * time.Second  // is what Flush gives a logger for a line
)

// Journal is the lines that are to be written, to whichever logger. Its zero value has none. Any
// goroutine.
type Journal struct {
	Scheduler *sched.Scheduler // nil: Go's

	mu      sync.Mutex
	texts   map[string]*lineRate
	queue   []line
	writing bool
	lines   uint64        // passed to loggers
	written chan struct{} // made by a waiter; closed when the queue is empty
}

// line is one that waits.
type line struct {
	to  slog.Handler
	ctx context.Context
	rec slog.Record
}

// lineRate is the state of a text.
type lineRate struct {
	since    time.Time // the time that is counted in
	n        int       // lines written in it
	unlogged uint64    // since the last that was written
}

// Logger returns a logger that writes to another one without waiting for it.
func (w *Journal) Logger(to *slog.Logger) *slog.Logger {
	return slog.New(&Handler{w, to.Handler()})
}

// Put queues a line for a handler, if its text has not been written too often, and if there is
// room.
func (w *Journal) Put(ctx context.Context, to slog.Handler, rec slog.Record) (queued bool) {
	l := line{to, ctx, rec}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rateOf(l.rec.Message)
	if !r.allowLine(time.Now()) || len(w.queue) >= linesInQueue {
		r.unlogged++
		return false
	}
	if r.unlogged > 0 {
		l.rec = l.rec.Clone()
		l.rec.AddAttrs(slog.Uint64("unlogged", r.unlogged))
		r.unlogged = 0
	}
	w.queue = append(w.queue, l)
	if !w.writing {
		w.writing = true
		w.Scheduler.Go(w.writeLines)
	}
	return true
}

func (w *Journal) rateOf(text string) *lineRate {
	if w.texts[text] == nil && len(w.texts) >= textsKnown {
		text = ""
	}
	r := w.texts[text]
	if r == nil {
		if w.texts == nil {
			w.texts = make(map[string]*lineRate)
		}
		r = &lineRate{}
		w.texts[text] = r
	}
	return r
}

func (r *lineRate) allowLine(now time.Time) bool {
	if now.Sub(r.since) >= linesEvery {
		r.since, r.n = now, 0
	}
	if r.n == linesOfAText {
		return false
	}
	r.n++
	return true
}

// writeLines writes what there is. A logger that does not return costs its line.
func (w *Journal) writeLines() {
	defer func() {
		_ = recover()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.queue) > 0 {
			w.Scheduler.Go(w.writeLines)
			return
		}
		w.writing, w.queue = false, nil
		if w.written != nil {
			close(w.written)
			w.written = nil
		}
	}()
	for {
		l, ok := w.nextLine()
		if !ok {
			return
		}
		if l.to.Enabled(l.ctx, l.rec.Level) {
			_ = l.to.Handle(l.ctx, l.rec)
		}
	}
}

func (w *Journal) nextLine() (l line, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return line{}, false
	}
	w.lines++
	l, w.queue[0] = w.queue[0], line{}
	w.queue = w.queue[1:]
	return l, true
}

// Flush waits until everything is written, or returns an error with the rest: when ctx ends, or
// when a logger does not return from a line, which may be waiting for this Shutdown.
func (w *Journal) Flush(ctx context.Context) error {
	for {
		written, lines := w.writeProgress()
		if written == nil {
			return nil
		}
		line, cancel := context.WithTimeout(ctx, lineWait)
		done := w.Scheduler.Await(written, line.Done())
		cancel()
		if done {
			return nil
		}
		w.mu.Lock()
		left, stands := len(w.queue), w.lines == lines
		w.mu.Unlock()
		if stands || ctx.Err() != nil {
			return fmt.Errorf("rdma: shutdown: the logger does not return from a line, and %d more wait for it: %w",
				left, context.Cause(line))
		}
	}
}

// writeProgress returns a channel that is closed when everything is written, nil if it is, and how
// many lines loggers were given.
func (w *Journal) writeProgress() (written chan struct{}, lines uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing && w.written == nil {
		w.written = make(chan struct{})
	}
	return w.written, w.lines
}

// Handler is a logger's handler behind the queue.
type Handler struct {
	w  *Journal
	to slog.Handler
}

// Enabled is the logger's for lines that are written where they are logged. For all others the
// logger is asked when they are written.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	if level >= slog.LevelInfo {
		return true
	}
	defer func() { _ = recover() }() // then it is not
	return h.to.Enabled(ctx, level)
}

// Handle queues a line, or writes it.
func (h *Handler) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Level < slog.LevelInfo {
		defer func() { _ = recover() }() // a logger that panics costs its line
		return h.to.Handle(ctx, rec)
	}
	h.w.Put(ctx, h.to, rec)
	return nil
}

// WithAttrs is the logger's, behind the same queue.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.w, h.to.WithAttrs(attrs)}
}

// WithGroup is the logger's, behind the same queue.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.w, h.to.WithGroup(name)}
}
