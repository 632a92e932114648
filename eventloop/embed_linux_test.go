package eventloop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// host is a foreign event loop: it polls FD and calls Turn when that is readable.
type host struct {
	t  *testing.T
	l  *eventloop.Loop
	fd int
}

func newHost(t *testing.T) *host {
	t.Helper()
	l := newLoop(t, eventloop.Config{})
	fd, err := l.FD()
	if err != nil {
		t.Fatal(err)
	}
	return &host{t, l, fd}
}

// readable polls FD for up to d.
func (h *host) readable(d time.Duration) bool {
	h.t.Helper()
	fds := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(d.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			h.t.Fatal(err)
		}
		return n == 1
	}
}

// want checks that FD becomes readable, and that Turn makes it unreadable again.
func (h *host) want(why string) {
	h.t.Helper()
	if !h.readable(time.Minute) {
		h.t.Fatalf("FD is not readable: %s", why)
	}
	turn(h.t, h.l)
	h.wantQuiet("after " + why)
}

func (h *host) wantQuiet(why string) {
	h.t.Helper()
	if h.readable(0) {
		h.t.Fatalf("FD is readable: %s", why)
	}
}

// quietUntil checks that FD is not readable before due. If the test was stopped in between, it does
// not check.
func (h *host) quietUntil(due time.Time, why string) {
	h.t.Helper()
	if h.readable(0) && time.Now().Before(due) {
		h.t.Fatalf("FD is readable: %s", why)
	}
}

func TestEmbedded(t *testing.T) {
	h := newHost(t)
	l := h.l
	defer shutdown(t, l)
	h.wantQuiet("a new loop")

	ran := 0
	count := func() { ran++ }
	for range 3 {
		if err := l.Post(count); err != nil {
			t.Fatal(err)
		}
	}
	h.want("posts before the first Turn")
	go l.Post(count)
	h.want("a post from another goroutine")
	if ran != 4 {
		t.Errorf("%d of 4 posts ran", ran)
	}

	p := pipe(t)
	var reg *eventloop.Registration
	reg, err := l.Add(p[0], eventloop.Readable, readyFunc(func(eventloop.Events) {
		var buf [8]byte
		unix.Read(p[0], buf[:])
		ran++
		if err := l.Turn(); !errors.Is(err, eventloop.ErrRunning) {
			t.Errorf("Turn inside a Turn: %v, want ErrRunning", err)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	h.wantQuiet("an empty pipe")
	unix.Write(p[1], []byte("x"))
	h.want("a byte in the pipe")
	if ran != 5 {
		t.Error("the pipe's handler was not called")
	}
	if err := reg.Remove(); err != nil {
		t.Error(err)
	}

	l.Defer(&runFunc{func(int) bool { ran++; return false }})
	h.want("work deferred outside a Turn")
	if ran != 6 {
		t.Error("deferred work did not run")
	}
	more := 3
	if err := l.Schedule(&runFunc{func(int) bool { more--; return more > 0 }}); err != nil {
		t.Fatal(err)
	}
	h.want("a Runnable")
	if more != 0 {
		t.Errorf("a Runnable has %d runs left", more)
	}
}

// TestEmbeddedWakeUps: the eventfd is written for work that comes while the host polls, not for
// work that a Turn finds anyway.
func TestEmbeddedWakeUps(t *testing.T) {
	h := newHost(t)
	l := h.l
	defer shutdown(t, l)
	post := func(fn func()) {
		if err := l.Post(fn); err != nil {
			t.Error(err)
		}
	}
	post(func() { post(func() { post(func() {}) }) })
	h.want("a post")
	l.AfterFunc(0, func() { post(func() {}) })
	h.want("a timer")
	if n := l.Stats().Wakeups; n != 1 {
		t.Errorf("%d wake-ups for a post, and what it and a timer post, want 1", n)
	}
	ran := false
	// between the last look at the queue and falling asleep
	l.SetYield(func() { post(func() { ran = true }) })
	post(l.Handoff)
	turn(t, l)
	h.want("a post during the yield")
	if !ran {
		t.Error("it did not run")
	}
}

func TestEmbeddedBudget(t *testing.T) {
	l := newLoop(t, eventloop.Config{TurnBudget: 2})
	fd, err := l.FD()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t, l, fd}
	defer shutdown(t, l)
	ran := 0
	for range 5 {
		if err := l.Post(func() { ran++ }); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 4, 5} {
		if !h.readable(time.Minute) {
			t.Fatalf("FD is not readable with work left after %d", ran)
		}
		turn(t, l)
		if ran != want {
			t.Errorf("%d pieces of work ran, want %d", ran, want)
		}
	}
	h.wantQuiet("everything ran")
}

func TestEmbeddedTimers(t *testing.T) {
	h := newHost(t)
	l := h.l
	defer shutdown(t, l)
	fired := 0
	late := l.AfterFunc(time.Hour, func() { t.Error("a timer of an hour fired") })
	const d = 3 * time.Millisecond
	begin := time.Now()
	l.AfterFunc(d, func() { fired++ }) // earlier than the one that was armed, outside a Turn
	h.quietUntil(begin.Add(d), "the timers are not due")
	h.want("a timer is due")
	if took := time.Since(begin); fired != 1 || took < d {
		t.Errorf("%d timers fired after %v, want one after %v", fired, took, d)
	}
	// armed inside a Turn
	var armed time.Time
	if err := l.Post(func() { armed = time.Now(); l.AfterFunc(d, func() { fired++ }) }); err != nil {
		t.Fatal(err)
	}
	if !h.readable(time.Minute) {
		t.Fatal("FD is not readable: a post")
	}
	turn(t, l)
	h.quietUntil(armed.Add(d), "after a post")
	h.want("a timer that a post armed")
	l.AfterFunc(0, func() { fired++ })
	h.want("a timer for now")
	if fired != 3 {
		t.Errorf("%d timers fired, want 3", fired)
	}
	l.AfterFunc(d, func() { t.Error("a stopped timer fired") }).Stop()
	late.Stop()
	turn(t, l)
	if h.readable(2 * d) {
		t.Error("FD is readable although no timer is armed")
	}
}

func TestEmbeddedShutdownFromAnotherGoroutine(t *testing.T) {
	h := newHost(t)
	turn(t, h.l)
	ran := false
	if err := h.l.Post(func() { ran = true }); err != nil {
		t.Fatal(err)
	}
	turn(t, h.l)
	ended := make(chan error)
	go func() { ended <- h.l.Shutdown(context.Background()) }()
	if !h.readable(time.Minute) {
		t.Fatal("FD does not report that the loop wants to end")
	}
	if err := h.l.Turn(); !errors.Is(err, eventloop.ErrClosed) {
		t.Errorf("the last Turn: %v, want ErrClosed", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if !ran {
		t.Error("what was posted did not run")
	}
}

// TestEmbeddedShutdownWithoutTurns: a host that no longer calls Turn is reported at the deadline.
func TestEmbeddedShutdownWithoutTurns(t *testing.T) {
	h := newHost(t)
	turn(t, h.l)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error)
	go func() { ended <- h.l.Shutdown(ctx) }()
	var stuck *eventloop.ShutdownError
	if err := <-ended; !errors.As(err, &stuck) || stuck.Holder.Kind != "" {
		t.Errorf("shutdown: %v, want a ShutdownError without a holder", err)
	}
	if err := h.l.Turn(); !errors.Is(err, eventloop.ErrClosed) {
		t.Errorf("the last Turn: %v, want ErrClosed", err)
	}
	shutdown(t, h.l)
}

func TestNoFDWithAPollerOfTheCallers(t *testing.T) {
	l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
	defer shutdown(t, l)
	if _, err := l.FD(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("FD: %v, want ErrUnsupported", err)
	}
	if err := l.Run(); !errors.Is(err, eventloop.ErrRunning) {
		t.Errorf("Run of an embedded loop: %v, want ErrRunning", err)
	}
}

// What the host calls between turns gets the present time. Within a turn the time stands still.
func TestNowBetweenTurns(t *testing.T) {
	h := newHost(t)
	defer shutdown(t, h.l)
	for range 2 {
		for range 2 {
			before := time.Now()
			if now := h.l.Now(); now.Before(before) {
				t.Errorf("between turns it is %v ago", before.Sub(now))
			}
		}
		var first, last time.Time
		if err := h.l.Schedule(&runFunc{func(int) bool {
			first = h.l.Now()
			time.Sleep(time.Millisecond)
			last = h.l.Now()
			return false
		}}); err != nil {
			t.Fatal(err)
		}
		h.want("something is scheduled")
		if first.IsZero() || !first.Equal(last) {
			t.Errorf("a turn began at %v, and then at %v", first, last)
		}
	}
}
