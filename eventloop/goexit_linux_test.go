package eventloop_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// exits ends the goroutine of every kind of callback.
type exits struct{}

func (exits) Ready(eventloop.Events) { runtime.Goexit() }
func (exits) Run(int) bool           { runtime.Goexit(); return false }
func exit()                          { runtime.Goexit() }
func panics()                        { panic("for the test") }

// A callback that ends the loop's goroutine is reported once, and ends the loop. What is queued
// runs on the goroutine of the registered functions, and fds and timers end. Shutdown returns the
// error and leaves nothing.
func TestExitEndsTheLoop(t *testing.T) {
	const wild, self = " and OnPanic exits", "github.com/rdmactor/rdmactor/eventloop_test."
	for kind, c := range map[string]struct {
		name  string
		queue func(l *eventloop.Loop, fd int) error
	}{
		"handler": {"handler eventloop_test.exits of fd", func(l *eventloop.Loop, fd int) error {
			_, err := l.Add(fd, eventloop.Writable, exits{})
			return err
		}},
		"timer": {"timer " + self + "exit", func(l *eventloop.Loop, _ int) error {
			l.AfterFunc(0, exit)
			return nil
		}},
		"post":     {"post " + self + "exit", func(l *eventloop.Loop, _ int) error { return l.Post(exit) }},
		"runnable": {"runnable eventloop_test.exits", func(l *eventloop.Loop, _ int) error { return l.Schedule(exits{}) }},
		"deferred": {"runnable eventloop_test.exits", func(l *eventloop.Loop, _ int) error { l.Defer(exits{}); return nil }},
		"blamed": {"runnable eventloop_test.exits", func(l *eventloop.Loop, _ int) error {
			return l.Post(func() {
				r := eventloop.Runnable(exits{})
				l.Blame(&r)
				exit()
			})
		}},
		"post" + wild:  {"post " + self + "exit", func(l *eventloop.Loop, _ int) error { return l.Post(exit) }},
		"panic" + wild: {"post " + self + "panics", func(l *eventloop.Loop, _ int) error { return l.Post(panics) }},
	} {
		for how, run := range map[string]func(t *testing.T, l *eventloop.Loop, fd int){
			"started":     func(_ *testing.T, l *eventloop.Loop, _ int) { l.Start() },
			"Run":         func(_ *testing.T, l *eventloop.Loop, _ int) { inGoroutine(func() { l.Run() }) },
			"embedded":    func(_ *testing.T, l *eventloop.Loop, _ int) { inGoroutine(func() { l.Turn() }) },
			"in Shutdown": func(t *testing.T, l *eventloop.Loop, _ int) { inGoroutine(func() { l.Shutdown(soon(t)) }) },
			"another host": func(t *testing.T, l *eventloop.Loop, fd int) {
				inGoroutine(func() { l.Turn() })
				h := &host{t, l, fd}
				var gone *eventloop.GoexitError
				if !h.readable(10 * time.Second) {
					t.Error("FD is not readable")
				} else if err := l.Turn(); !errors.As(err, &gone) || !errors.Is(err, eventloop.ErrClosed) {
					t.Errorf("the next Turn: %v", err)
				}
			},
		} {
			if how == "in Shutdown" && (kind == "handler" || kind == "timer") {
				continue // they have ended by then
			}
			t.Run(kind+", "+how, func(t *testing.T) {
				sameFDs(t)
				reports := make(chan eventloop.Panic, 10)
				l := newLoop(t, eventloop.Config{Logger: quiet, OnPanic: func(p eventloop.Panic) {
					reports <- p
					if strings.HasSuffix(kind, wild) {
						runtime.Goexit()
					}
				}})
				fd := -1
				if how == "embedded" || how == "another host" {
					var err error
					if fd, err = l.FD(); err != nil {
						t.Fatal(err)
					}
				}
				var ends []int
				queued := 0
				l.OnGoexit(func(error) { ends = append(ends, 1) })
				l.OnGoexit(func(err error) {
					var gone *eventloop.GoexitError
					if !l.OnLoop() || !errors.As(err, &gone) {
						t.Errorf("it is called on the loop: %v, with %v", l.OnLoop(), err)
					}
					ends = append(ends, 2)
					if _, err := l.Add(pipe(t)[1], eventloop.Writable, exits{}); !errors.Is(err, eventloop.ErrClosed) {
						t.Errorf("Add: %v, want ErrClosed", err)
					}
					l.AfterFunc(0, func() { t.Error("a timer fires") })
					if err := l.Schedule(&runFunc{func(int) bool { queued++; return false }}); err != nil {
						t.Error(err)
					}
				})
				l.AfterFunc(time.Hour, func() {})
				if err := c.queue(l, pipe(t)[1]); err != nil {
					t.Fatal(err)
				}
				if err := l.Post(func() { queued++ }); err != nil {
					t.Fatal(err)
				}
				run(t, l, fd)
				p := <-reports
				err := l.Shutdown(soon(t))
				var gone *eventloop.GoexitError
				if !errors.As(err, &gone) || len(reports) > 0 {
					t.Fatalf("Shutdown: %v, %d further reports", err, len(reports))
				}
				who := gone.Holder.String()
				if !strings.HasPrefix(who, c.name) || p.Holder != gone.Holder || !strings.Contains(err.Error(), who) {
					t.Errorf("Shutdown returns %v, the report has %v, want %s", err, p.Holder, c.name)
				}
				if kind != "panic"+wild && !strings.Contains(string(p.Stack), "eventloop_test.exit") {
					t.Errorf("the stack is another one's: %s", p.Stack)
				}
				if !slices.Equal(ends, []int{2, 1}) || queued != 2 {
					t.Errorf("the functions were called in the order %v, and %d of 2 functions that were queued", ends, queued)
				}
				if s := l.Stats(); s.FDs != 0 || s.Timers != 0 || s.Queued != 0 || s.Panics != 1 {
					t.Errorf("left: %+v", s)
				}
			})
		}
	}
}

// The registered functions are called again each further time that they or queued work end the
// goroutine.
func TestFurtherExits(t *testing.T) {
	sameFDs(t)
	reports := make(chan eventloop.Panic, 10)
	l := newLoop(t, eventloop.Config{Logger: quiet, OnPanic: func(p eventloop.Panic) { reports <- p }})
	first, calls := 0, 0
	l.OnGoexit(func(error) { first++ })
	l.OnGoexit(func(error) {
		if calls++; calls == 1 {
			runtime.Goexit()
		}
	})
	for range 2 {
		if err := l.Post(exit); err != nil {
			t.Fatal(err)
		}
	}
	l.Start()
	for range 3 {
		<-reports
	}
	var gone *eventloop.GoexitError
	if err := l.Shutdown(soon(t)); !errors.As(err, &gone) {
		t.Errorf("Shutdown: %v", err)
	}
	if calls != 3 || first != 2 {
		t.Errorf("called %d and %d times, want 3 and 2", calls, first)
	}
}
