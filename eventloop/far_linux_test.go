package eventloop_test

import (
	"context"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Timers that are far away come on time, one after the other, however often the loop is woken
// before, and also one that is set for an earlier time than the timerfd is.
func TestFarTimers(t *testing.T) {
	l, err := eventloop.New()
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	const far = 1100 * time.Millisecond
	fired := make(chan time.Time)
	begin := time.Now()
	if err := l.Post(func() {
		l.AfterFunc(time.Hour, func() {})
		l.AfterFunc(10*time.Millisecond, func() { // by now the timerfd is set to an hour
			l.AfterFunc(far, func() {
				l.AfterFunc(far, func() { fired <- time.Now() })
				fired <- time.Now()
			})
		})
	}); err != nil {
		t.Fatal(err)
	}
	woken := time.NewTicker(5 * time.Millisecond)
	defer woken.Stop()
	for n := 1; n <= 2; {
		select {
		case <-woken.C:
			if err := l.Post(func() {}); err != nil {
				t.Fatal(err)
			}
		case at := <-fired:
			if took := at.Sub(begin); took < time.Duration(n)*far || took > time.Duration(n)*far+10*time.Second {
				t.Errorf("timer %d has fired after %v", n, took)
			}
			n++
		case <-time.After(20 * time.Second):
			t.Fatal("a timer has not fired")
		}
	}
	// Without anything else that wakes the loop.
	if err := l.Post(func() { l.AfterFunc(far, func() { fired <- time.Now() }) }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-fired:
	case <-time.After(20 * time.Second):
		t.Fatal("the timer of an idle loop has not fired")
	}
	if err := l.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}
