package eventlooptest_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	in  = eventloop.Readable
	out = eventloop.Writable
)

// wait calls Wait once; nothing is expected to fail.
func wait(t *testing.T, p *eventlooptest.Poller, room int, timeout time.Duration) []eventloop.Ready {
	t.Helper()
	dst := make([]eventloop.Ready, room)
	n, err := p.Wait(dst, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return dst[:n]
}

func want(t *testing.T, why string, got []eventloop.Ready, want ...eventloop.Ready) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: reported %v, want %v", why, got, want)
	}
}

func add(t *testing.T, p *eventlooptest.Poller, fd int, ev eventloop.Events, tag uint64) {
	t.Helper()
	if err := p.Add(fd, ev, tag); err != nil {
		t.Fatal(err)
	}
}

func TestFire(t *testing.T) {
	p := eventlooptest.NewPoller()
	add(t, p, 1, in, 10)
	add(t, p, 2, in, 20)
	p.Fire(1, in|out)
	p.Fire(2, in)
	p.Fire(1, eventloop.Hangup)
	want(t, "no room for the third", wait(t, p, 2, 0), eventloop.Ready{Tag: 10, Events: in}, eventloop.Ready{Tag: 20, Events: in})
	want(t, "hangup needs no interest", wait(t, p, 2, -1), eventloop.Ready{Tag: 10, Events: eventloop.Hangup})
	want(t, "nobody asked for writable", wait(t, p, 2, 0))
	if err := p.Modify(1, out, 11); err != nil {
		t.Fatal(err)
	}
	want(t, "writable is asked for now, but was fired under the old tag", wait(t, p, 2, -1), eventloop.Ready{Tag: 10, Events: out})
	p.Fire(2, in)
	if err := p.Remove(2); err != nil {
		t.Fatal(err)
	}
	add(t, p, 2, in, 21)
	want(t, "fired before the Remove", wait(t, p, 2, 0), eventloop.Ready{Tag: 20, Events: in})
	if err := p.Remove(2); err != nil {
		t.Fatal(err)
	}
	p.Fire(2, in)
	want(t, "fired after the Remove", wait(t, p, 2, 0), eventloop.Ready{Tag: 21, Events: in})
	defer func() {
		if recover() == nil {
			t.Error("Fire of an fd that was never added did not panic")
		}
	}()
	p.Fire(3, in)
}

func TestErrors(t *testing.T) {
	p := eventlooptest.NewPoller()
	add(t, p, 1, in, 1)
	for why, c := range map[string]struct{ got, want error }{
		"add twice":      {p.Add(1, in, 2), syscall.EEXIST},
		"add -1":         {p.Add(-1, in, 2), syscall.EBADF},
		"modify unknown": {p.Modify(2, in, 2), syscall.ENOENT},
		"remove unknown": {p.Remove(2), syscall.ENOENT},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", why, c.got, c.want)
		}
	}
	boom := errors.New("boom")
	for _, op := range []eventlooptest.Op{
		eventlooptest.OpAdd, eventlooptest.OpModify, eventlooptest.OpRemove, eventlooptest.OpWait, eventlooptest.OpWake, eventlooptest.OpClose,
	} {
		p.Fail(op, boom)
	}
	call := func() []error {
		_, err := p.Wait(nil, 0)
		return []error{p.Modify(1, out, 1), p.Remove(1), p.Add(1, in, 1), err, p.Wake(), p.Close()}
	}
	for i, err := range call() {
		if !errors.Is(err, boom) {
			t.Errorf("call %d: %v, want the scripted error", i, err)
		}
	}
	for i, err := range call() {
		if err != nil {
			t.Errorf("call %d after the scripted one: %v", i, err)
		}
	}
}

func TestWaitInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eventlooptest.NewPoller()
		add(t, p, 1, in, 1)
		for _, c := range []struct {
			why     string
			timeout time.Duration
			after   func()
			ends    time.Duration
			want    []eventloop.Ready
		}{
			{"time-out", time.Minute, func() {}, time.Minute, nil},
			{"wake", -1, func() { p.Wake() }, time.Second, nil},
			{"fire", time.Minute, func() { p.Fire(1, in) }, time.Second, []eventloop.Ready{{Tag: 1, Events: in}}},
			{"what nobody asked for does not end it", time.Minute, func() { p.Fire(1, out) }, time.Minute, nil},
		} {
			begin := time.Now()
			time.AfterFunc(time.Second, c.after)
			want(t, c.why, wait(t, p, 4, c.timeout), c.want...)
			if d := time.Since(begin); d != c.ends {
				t.Errorf("%s: ended after %v, want %v", c.why, d, c.ends)
			}
		}
		time.AfterFunc(time.Second, func() { p.Fail(eventlooptest.OpWait, syscall.EINTR) })
		if _, err := p.Wait(nil, -1); !errors.Is(err, syscall.EINTR) {
			t.Errorf("a scripted error: %v, want EINTR", err)
		}
		if err := p.Wake(); err != nil {
			t.Fatal(err)
		}
		want(t, "a wake before the wait counts", wait(t, p, 4, -1))
	})
}

func TestClockEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := eventlooptest.NewClock(time.Unix(0, 0))
		p := eventlooptest.NewPollerOn(clock)
		fired := make(chan time.Time, 1)
		l, err := eventloop.New(eventloop.Config{Poller: p, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		l.AfterFunc(time.Minute, func() { fired <- l.Now() })
		l.Start()
		for range 2 {
			synctest.Wait()
			select {
			case at := <-fired:
				t.Errorf("a timer of a minute fired at %v", at)
			default:
			}
			clock.Advance(30 * time.Second)
		}
		if at := <-fired; !at.Equal(time.Unix(60, 0)) {
			t.Errorf("fired at %v, want 60 s", at)
		}
		if err := l.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if !p.Closed() || p.Waits() == 0 {
			t.Error("the loop has not used the poller to the end")
		}
	})
}
