package eventloop_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

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
