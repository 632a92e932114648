package eventloop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// TestTurnsAreMeasured has a loop that is busy, and one that waits, in virtual time.
func TestTurnsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := eventloop.New(eventloop.Config{Poller: eventlooptest.NewPoller(), StallAfter: -1})
		if err != nil {
			t.Fatal(err)
		}
		l.Start()
		run := func(d time.Duration) {
			done := make(chan struct{})
			if err := l.Post(func() { time.Sleep(d); close(done) }); err != nil {
				t.Fatal(err)
			}
			<-done
			synctest.Wait()
		}
		want := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		time.Sleep(time.Minute)
		run(3 * time.Second)
		time.Sleep(7 * time.Second)
		run(2 * time.Second)
		s := l.Stats()
		want("busy", s.Busy, 5*time.Second)
		want("the longest turn", s.LongestTurn, 3*time.Second)
		want("the longest turn lately", s.RecentTurn, 3*time.Second)
		want("the longest wait", s.LongestWait, time.Minute)
		want("the present turn", s.Turn, 0)
		time.Sleep(30 * time.Second)
		want("the longest turn lately, of an idle loop", l.Stats().RecentTurn, 0)
		run(time.Second)
		time.Sleep(10 * time.Second)
		want("the longest turn lately, 10 s later", l.Stats().RecentTurn, time.Second)
		want("the longest turn lately, later", l.Stats().RecentTurn, time.Second)
		want("the longest turn, later", l.Stats().LongestTurn, 3*time.Second)

		_ = l.Post(func() { time.Sleep(time.Hour) })
		_ = l.Post(func() {})
		time.Sleep(10 * time.Second)
		s = l.Stats()
		want("the present turn of a blocked loop", s.Turn, 10*time.Second)
		if s.Queued != 2 || l.Holder().Kind != "post" {
			t.Errorf("of a blocked loop: %d queued, want 2, and %v has it", s.Queued, l.Holder())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		want("the longest turn lately, after a block", l.Stats().RecentTurn, time.Hour)
		if s := l.Stats(); s.Queued != 0 || s.Turn != 0 || s.Busy != 5*time.Second+time.Second+time.Hour {
			t.Errorf("afterwards: %+v", s)
		}
		if err := l.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A loop that polls and finds nothing is not busy.
func TestPollingIsNotBusy(t *testing.T) {
	l, err := eventloop.New(eventloop.Config{Poller: eventlooptest.NewPoller(), Wait: eventloop.Busy, StallAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	for l.Stats().Turns < 10_000 {
		time.Sleep(time.Millisecond)
	}
	if s := l.Stats(); s.Busy != 0 || s.LongestTurn != 0 {
		t.Errorf("%d turns without work: %+v", s.Turns, s)
	}
	if err := l.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
