package eventloop_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// newLoop makes a loop with the ownership checks on.
func newLoop(t testing.TB, cfg eventloop.Config) *eventloop.Loop {
	t.Helper()
	cfg.CheckOwner = true
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

func TestPostRunsInOrder(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	var got []int
	for i := range 100 {
		if err := l.Post(func() { got = append(got, i) }); err != nil {
			t.Fatal(err)
		}
	}
	on(t, l, func() {
		if len(got) != 100 || !slices.IsSorted(got) {
			t.Errorf("posted 0 to 99, ran %v", got)
		}
		if !l.OnLoop() {
			t.Error("a posted function is not on the loop")
		}
	})
	if l.OnLoop() {
		t.Error("the test's goroutine claims to be the loop's")
	}
}

func TestTimersInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		var got []time.Duration
		begin := time.Now()
		for _, d := range []time.Duration{3 * time.Hour, time.Second, 0, -time.Second, time.Millisecond, time.Second} {
			l.AfterFunc(d, func() {
				if at := time.Since(begin); at != max(d, 0) {
					t.Errorf("timer of %v fired after %v", d, at)
				}
				got = append(got, d)
			})
		}
		l.Start()
		time.Sleep(4 * time.Hour)
		on(t, l, func() {})
		shutdown(t, l)
		want := []time.Duration{0, -time.Second, time.Millisecond, time.Second, time.Second, 3 * time.Hour}
		if !slices.Equal(got, want) {
			t.Errorf("timers fired in the order %v, want %v", got, want)
		}
	})
}

func TestPostAfterShutdown(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	l.Start()
	shutdown(t, l)
	shutdown(t, l) // idempotent
	if err := l.Post(func() { t.Error("ran") }); !errors.Is(err, eventloop.ErrClosed) {
		t.Errorf("post after the end: %v, want ErrClosed", err)
	}
}
