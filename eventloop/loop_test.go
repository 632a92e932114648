package eventloop_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rdmactor/rdmactor/eventloop"
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

func TestPostAfterShutdown(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	l.Start()
	shutdown(t, l)
	shutdown(t, l) // idempotent
	if err := l.Post(func() { t.Error("ran") }); !errors.Is(err, eventloop.ErrClosed) {
		t.Errorf("post after the end: %v, want ErrClosed", err)
	}
}
