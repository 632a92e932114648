package world

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// newLogger writes into the trace. Its lines are not hashed, because they may contain parts that
// differ from run to run, such as a goroutine's number. Lines other than debugging ones are written
// by goroutines, so they are written even if the trace is not printed: a printed run must equal an
// unprinted one.
func (p *Process) newLogger() *slog.Logger {
	var h slog.Handler = lines{p: p}
	if p.w.cfg.Log != nil {
		h = p.w.cfg.Log(h)
	}
	return slog.New(h)
}

// lines is a slog.Handler.
type lines struct {
	p      *Process
	prefix string
	attrs  string
}

// Enabled implements slog.Handler.
func (l lines) Enabled(_ context.Context, level slog.Level) bool {
	return level > slog.LevelDebug || l.p.w.cfg.Print != nil
}

// Handle implements slog.Handler.
func (l lines) Handle(_ context.Context, r slog.Record) error {
	if l.p.w.cfg.Print == nil {
		return nil
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s logs %v %s%s", l.p.name, r.Level, r.Message, l.attrs)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&s, " %s%s=%v", l.prefix, a.Key, a.Value)
		return true
	})
	l.p.w.addNote(s.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (l lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		l.attrs += fmt.Sprintf(" %s%s=%v", l.prefix, a.Key, a.Value)
	}
	return l
}

// WithGroup implements slog.Handler.
func (l lines) WithGroup(name string) slog.Handler {
	l.prefix += name + "."
	return l
}
