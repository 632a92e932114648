package eventloop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// namedRun is a Runnable with a LoopName.
type namedRun struct {
	name string
	run  func() bool
}

func (r *namedRun) LoopName() string { return r.name }
func (r *namedRun) Run(int) bool     { return r.run() }

// namedHandler is a Handler with a LoopName.
type namedHandler struct {
	readyFunc
	name string
}

func (h *namedHandler) LoopName() string { return h.name }

func TestShutdownOnTheLoop(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	on(t, l, func() {
		if err := l.Shutdown(context.Background()); !errors.Is(err, eventloop.ErrOnLoop) {
			t.Errorf("shutdown on the loop: %v, want ErrOnLoop", err)
		}
	})
	on(t, l, func() {}) // it had no effect
}

func TestShutdownRunsWhatWasPosted(t *testing.T) {
	for _, how := range []string{"started", "never started", "embedded"} {
		t.Run(how, func(t *testing.T) {
			l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller(), TurnBudget: 2})
			ran := 0
			for range 10 {
				if err := l.Post(func() {
					ran++
					if err := l.Shutdown(context.Background()); !errors.Is(err, eventloop.ErrOnLoop) {
						t.Errorf("shutdown inside a callback: %v, want ErrOnLoop", err)
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			switch how {
			case "started":
				l.Start()
			case "embedded":
				turn(t, l)
			}
			shutdown(t, l)
			if ran != 10 {
				t.Errorf("%d of 10 posted functions ran", ran)
			}
			if l.OnLoop() {
				t.Error("a loop that ended still owns the goroutine")
			}
			if err := l.Run(); !errors.Is(err, eventloop.ErrClosed) {
				t.Errorf("Run after the end: %v, want ErrClosed", err)
			}
			if err := l.Turn(); !errors.Is(err, eventloop.ErrClosed) {
				t.Errorf("Turn after the end: %v, want ErrClosed", err)
			}
			if _, err := l.Add(1, 0, readyFunc(nil)); !errors.Is(err, eventloop.ErrClosed) {
				t.Errorf("Add after the end: %v, want ErrClosed", err)
			}
			l.Start() // a loop that was shut down stays so
		})
	}
}

func TestShutdownNamesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eventlooptest.NewPoller()
		for _, c := range []struct {
			want  eventloop.Holder
			block func(l *eventloop.Loop, wait func())
		}{
			{eventloop.Holder{Kind: "runnable", Name: "conn-7"}, func(l *eventloop.Loop, wait func()) {
				l.Schedule(&namedRun{"conn-7", func() bool { wait(); return false }})
			}},
			{eventloop.Holder{Kind: "runnable", Name: "*eventloop_test.runFunc"}, func(l *eventloop.Loop, wait func()) {
				l.Schedule(&runFunc{func(int) bool { wait(); return false }})
			}},
			{eventloop.Holder{Kind: "runnable", Name: "flush-9"}, func(l *eventloop.Loop, wait func()) {
				l.Defer(&namedRun{"flush-9", func() bool { wait(); return false }})
			}},
			{eventloop.Holder{Kind: "handler", Name: "listener-1"}, func(l *eventloop.Loop, wait func()) {
				l.Add(5, eventloop.Readable, &namedHandler{func(eventloop.Events) { wait() }, "listener-1"})
				p.Fire(5, eventloop.Readable)
			}},
			{eventloop.Holder{Kind: "handler", Name: "eventloop_test.readyFunc of fd 6"}, func(l *eventloop.Loop, wait func()) {
				l.Add(6, eventloop.Readable, readyFunc(func(eventloop.Events) { wait() }))
				p.Fire(6, eventloop.Readable)
			}},
			{eventloop.Holder{Kind: "timer", Name: "TestShutdownNamesTheHolder"}, func(l *eventloop.Loop, wait func()) {
				l.AfterFunc(0, func() { wait() })
			}},
			{eventloop.Holder{Kind: "post", Name: "TestShutdownNamesTheHolder"}, func(l *eventloop.Loop, wait func()) {
				l.Post(func() { wait() })
			}},
		} {
			p = eventlooptest.NewPoller()
			l := newLoop(t, eventloop.Config{Poller: p, Logger: quiet})
			release := make(chan struct{})
			c.block(l, func() { <-release })
			l.Start()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begin := time.Now()
			err := l.Shutdown(ctx)
			cancel()
			if d := time.Since(begin); d != time.Second {
				t.Errorf("%v: returned after %v, want the deadline, 1s", c.want, d)
			}
			var stuck *eventloop.ShutdownError
			if !errors.As(err, &stuck) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%v: %v, want a ShutdownError with DeadlineExceeded", c.want, err)
			}
			if stuck.Holder.Kind != c.want.Kind || !strings.Contains(stuck.Holder.Name, c.want.Name) {
				t.Errorf("holder %v, want %v", stuck.Holder, c.want)
			}
			if !strings.Contains(err.Error(), stuck.Holder.Name) {
				t.Errorf("%q does not name the holder", err)
			}
			close(release)
			shutdown(t, l) // it ends once it is let go
			if !p.Closed() {
				t.Error("the poller was not closed")
			}
		}
	})
}

// TestShutdownOfWorkWithoutEnd: a Runnable that always has more keeps a drain going until the
// deadline, and then no longer.
func TestShutdownOfWorkWithoutEnd(t *testing.T) {
	for _, started := range []bool{true, false} {
		l := newLoop(t, eventloop.Config{Logger: quiet})
		if err := l.Schedule(&runFunc{func(int) bool { return true }}); err != nil {
			t.Fatal(err)
		}
		if started {
			l.Start()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := l.Shutdown(ctx)
		cancel()
		var stuck *eventloop.ShutdownError
		if !errors.As(err, &stuck) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("started %v: %v, want a ShutdownError with DeadlineExceeded", started, err)
		}
		shutdown(t, l)
	}
}

func TestOneRunsTheLoop(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	if err := l.Run(); !errors.Is(err, eventloop.ErrRunning) {
		t.Errorf("Run of a started loop: %v, want ErrRunning", err)
	}
	if err := l.Turn(); !errors.Is(err, eventloop.ErrRunning) {
		t.Errorf("Turn of a started loop: %v, want ErrRunning", err)
	}
	if _, err := l.FD(); !errors.Is(err, eventloop.ErrRunning) {
		t.Errorf("FD of a started loop: %v, want ErrRunning", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second Start did not panic")
		}
	}()
	l.Start()
}

func TestCheckGoroutine(t *testing.T) {
	l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
	timer := l.NewTimer(func() {})
	r, err := l.Add(1, 0, readyFunc(nil)) // not run yet
	if err != nil {
		t.Fatal(err)
	}
	start(t, l)
	on(t, l, func() {})
	for name, fn := range map[string]func(){
		"Add":    func() { l.Add(2, 0, readyFunc(nil)) },
		"Modify": func() { r.Modify(0) },
		"Remove": func() { r.Remove() },
		"Reset":  func() { timer.Reset(0) },
		"Stop":   func() { timer.Stop() },
		"Defer":  func() { l.Defer(&runFunc{}) },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(v.(string), "goroutine") {
					t.Errorf("%s on another goroutine: recovered %v, want a panic that says so", name, v)
				}
			}()
			fn()
		}()
	}
}

func TestGoroutineID(t *testing.T) {
	mine := eventloop.GoroutineID()
	if mine == 0 {
		t.Fatal("the runtime's stack format has changed: no goroutine id")
	}
	other := make(chan uint64)
	go func() { other <- eventloop.GoroutineID() }()
	if id := <-other; id == 0 || id == mine {
		t.Errorf("another goroutine has id %d, mine is %d", id, mine)
	}
}
