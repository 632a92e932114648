package eventloop_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// TestPanicsStayWithTheirCallback: each kind of callback panics between two that must not notice.
func TestPanicsStayWithTheirCallback(t *testing.T) {
	var got []eventloop.Panic
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p, OnPanic: func(p eventloop.Panic) { got = append(got, p) }})
	turn(t, l)
	defer shutdown(t, l)
	calm := 0
	ok := func() { calm++ }
	handler := &namedHandler{func(eventloop.Events) { panic("in handler") }, "h"}
	run := &namedRun{"r", func() bool { panic("in runnable") }}
	deferred := &namedRun{"d", func() bool { panic("in deferred") }}
	calmRun := &runFunc{func(int) bool { ok(); return false }}
	for fd, h := range []eventloop.Handler{readyFunc(func(eventloop.Events) { ok() }), handler, readyFunc(func(eventloop.Events) { ok() })} {
		if _, err := l.Add(fd, eventloop.Readable, h); err != nil {
			t.Fatal(err)
		}
		p.Fire(fd, eventloop.Readable)
	}
	for _, fn := range []func(){ok, func() { panic("in timer") }, ok} {
		l.AfterFunc(0, fn)
	}
	for _, fn := range []func(){ok, func() { panic("in post") }, ok} {
		if err := l.Post(fn); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Schedule(run); err != nil {
		t.Fatal(err)
	}
	l.Defer(deferred)
	l.Defer(calmRun)
	turn(t, l)
	if calm != 7 {
		t.Errorf("%d of the 7 others ran", calm)
	}
	want := []struct {
		kind, value string
		who         any
	}{
		{"handler", "in handler", handler},
		{"timer", "in timer", nil},
		{"post", "in post", nil},
		{"runnable", "in runnable", run},
		{"runnable", "in deferred", deferred},
	}
	if len(got) != len(want) {
		t.Fatalf("%d panics reported, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Loop != "test" || g.Holder.Kind != w.kind || g.Value != w.value || g.Who != w.who {
			t.Errorf("panic %d: %s %v %v from %v, want %+v", i, g.Loop, g.Holder, g.Value, g.Who, w)
		}
		if !strings.Contains(string(g.Stack), "panic_test.go") {
			t.Errorf("panic %d: the stack does not show where:\n%s", i, g.Stack)
		}
	}
	if n := l.Stats().Panics; n != uint64(len(want)) {
		t.Errorf("%d panics counted, want %d", n, len(want))
	}
}

func TestPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	l := newLoop(t, eventloop.Config{
		Name: "loop-3", Poller: eventlooptest.NewPoller(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := l.Post(func() { panic("boom") }); err != nil {
		t.Fatal(err)
	}
	turn(t, l)
	shutdown(t, l)
	for _, want := range []string{"boom", "loop-3", "TestPanicIsLogged", "panic_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, &log)
		}
	}
}

// embeds is a user's Runnable that embeds a Registration, which may still be nil.
type embeds struct{ *eventloop.Registration }

func (embeds) LoopName() string { return "mine" }
func (embeds) Run(int) bool     { panic("oops") }

// Work that embeds a Registration is not taken for the loop's own.
func TestRunnableThatEmbedsARegistration(t *testing.T) {
	got := make(chan eventloop.Panic, 1)
	l, err := eventloop.New(eventloop.Config{OnPanic: func(p eventloop.Panic) { got <- p }})
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	if err := l.Schedule(embeds{}); err != nil {
		t.Fatal(err)
	}
	if p := <-got; p.Holder.String() != "runnable mine" {
		t.Errorf("who has panicked is called %q", p.Holder)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
