package eventloop_test

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/rdmactor/rdmactor/eventloop"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newLoop makes a loop with the ownership checks on.
func newLoop(t testing.TB, cfg eventloop.Config) *eventloop.Loop {
	t.Helper()
	cfg.CheckGoroutine = true
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	l, err := eventloop.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// start runs the loop until the test is over.
func start(t testing.TB, l *eventloop.Loop) {
	t.Helper()
	l.Start()
	t.Cleanup(func() { shutdown(t, l) })
}

func shutdown(t testing.TB, l *eventloop.Loop) {
	t.Helper()
	if err := l.Shutdown(context.Background()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// on runs fn on the loop and waits for it.
func on(t testing.TB, l *eventloop.Loop, fn func()) {
	t.Helper()
	done := make(chan struct{})
	if err := l.Post(func() { defer close(done); fn() }); err != nil {
		t.Fatalf("post: %v", err)
	}
	<-done
}

// readyFunc is a function as a Handler.
type readyFunc func(eventloop.Events)

func (f readyFunc) Ready(ev eventloop.Events) { f(ev) }

// runFunc is a function as a Runnable; boxed, so that it can be compared.
type runFunc struct{ run func(budget int) bool }

func (f *runFunc) Run(budget int) bool { return f.run(budget) }

// turn runs one Turn of an embedded loop.
func turn(t testing.TB, l *eventloop.Loop) {
	t.Helper()
	if err := l.Turn(); err != nil {
		t.Fatalf("turn: %v", err)
	}
}
