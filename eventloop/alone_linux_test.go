package eventloop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// sameFDs checks that a test leaves as many descriptors as it found.
func sameFDs(t *testing.T) {
	t.Helper()
	before := openFDs(t)
	t.Cleanup(func() {
		if after := openFDs(t); after != before {
			t.Errorf("%d fds open, %d before", after, before)
		}
	})
}

// A timer of a loop that has ended must not change a timerfd that reuses the number.
func TestTimerOfALoopThatEnded(t *testing.T) {
	sameFDs(t)
	ended := newHost(t)
	timer := ended.l.AfterFunc(time.Hour, func() {})
	stopped := ended.l.AfterFunc(2*time.Hour, func() {})
	shutdown(t, ended.l)
	h := newHost(t) // takes the same numbers
	if h.fd != ended.fd {
		t.Logf("the next loop has fd %d, not %d: little is tested", h.fd, ended.fd)
	}
	defer shutdown(t, h.l)
	h.l.AfterFunc(20*time.Millisecond, func() {})
	timer.Reset(time.Minute)
	stopped.Stop()
	if !h.readable(10 * time.Second) {
		t.Error("another loop's timer does not fire")
	}
	if n := ended.l.Stats().Timers; n != 1 {
		t.Errorf("%d timers armed, want the one that nobody has stopped", n)
	}
}

// FD is readable for no timer that was stopped, whether it was due already or not.
func TestEmbeddedStoppedTimers(t *testing.T) {
	sameFDs(t)
	h := newHost(t)
	defer shutdown(t, h.l)
	const d = 2 * time.Millisecond
	early := h.l.AfterFunc(d, func() { t.Error("a stopped timer fired") })
	fired := false
	begin := time.Now()
	h.l.AfterFunc(20*d, func() { fired = true })
	early.Stop()
	h.want("the other timer")
	if took := time.Since(begin); !fired || took < 20*d {
		t.Errorf("FD was readable after %v, the other timer fired: %v", took, fired)
	}
	due := h.l.AfterFunc(d, func() { t.Error("a stopped timer fired") })
	if !h.readable(10 * time.Second) {
		t.Fatal("FD is not readable for a timer")
	}
	due.Stop()
	h.wantQuiet("the timer that was due was stopped")
}

// FD and Shutdown are called at the same time: either may be first.
func TestFDDuringShutdown(t *testing.T) {
	sameFDs(t)
	for range 300 {
		l := newLoop(t, eventloop.Config{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := l.FD(); err != nil && !errors.Is(err, eventloop.ErrClosed) {
				t.Errorf("FD: %v", err)
			}
		})
		if err := l.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
	}
}

// If a host recovers a panic of OnPanic, its loop still works: the rest of the Turn runs, and FD
// reports later events.
func TestHostRecovers(t *testing.T) {
	sameFDs(t)
	l := newLoop(t, eventloop.Config{OnPanic: rethrow})
	fd, err := l.FD()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t, l, fd}
	defer shutdown(t, l)
	var ran []string
	say := func(s string) func() { return func() { ran = append(ran, s) } }
	broken := func(why string) {
		t.Helper()
		defer func() {
			if v := recover(); v != why {
				t.Errorf("recovered %v, want %q", v, why)
			}
		}()
		l.Turn()
	}
	if err := l.Post(func() { panic("in a post") }); err != nil {
		t.Fatal(err)
	}
	broken("in a post")
	h.wantQuiet("nothing is left")
	if err := l.Post(say("post")); err != nil {
		t.Fatal(err)
	}
	h.want("a post after it")
	l.Defer(&runFunc{func(int) bool { panic("in deferred work") }})
	l.Defer(&runFunc{func(int) bool { say("deferred")(); return false }})
	broken("in deferred work")
	h.want("what was deferred behind it")
	if err := l.Post(func() { panic("before a timer") }); err != nil {
		t.Fatal(err)
	}
	l.AfterFunc(time.Millisecond, say("timer"))
	broken("before a timer")
	for len(ran) < 3 {
		h.want("a timer")
	}
	if got := strings.Join(ran, " "); got != "post deferred timer" {
		t.Errorf("ran %q", got)
	}
	if l.Stats().Panics != 3 {
		t.Errorf("%d panics counted, want 3", l.Stats().Panics)
	}
}

// A panic in OnPanic in the Turn that ends the loop reaches the host, and the loop has ended.
func TestPanicInOnPanicInTheLastTurn(t *testing.T) {
	sameFDs(t)
	l := newLoop(t, eventloop.Config{OnPanic: rethrow, Logger: quiet})
	turn(t, l)
	if err := l.Post(func() { panic("enough") }); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- l.Shutdown(soon(t)) }()
	for l.Post(func() {}) == nil {
		runtime.Gosched()
	}
	func() {
		defer func() {
			if v := recover(); v != "enough" {
				t.Errorf("recovered %v", v)
			}
		}()
		l.Turn()
	}()
	var late *eventloop.ShutdownError
	if err := <-ended; err == nil || errors.As(err, &late) {
		t.Errorf("Shutdown: %v, want what ended the loop", err)
	}
	if err := l.Turn(); !errors.Is(err, eventloop.ErrClosed) {
		t.Errorf("the next Turn: %v, want ErrClosed", err)
	}
}

// If a host stops calling Turn, its loop ends with the Shutdown that waited for it. A host that
// returns gets an error, and its calls have no effect on other files.
func TestHostThatHasLeft(t *testing.T) {
	sameFDs(t)
	h := newHost(t)
	p := pipe(t)
	defer p.close(0)
	defer p.close(1)
	turned, stop, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	l, err := eventloop.New(eventloop.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(left)
		if _, err := l.FD(); err != nil {
			t.Error(err)
		}
		turn(t, l)
		close(turned)
		for {
			select {
			case <-stop:
				if err := l.Turn(); !errors.Is(err, eventloop.ErrClosed) {
					t.Errorf("Turn of the host that is back: %v, want ErrClosed", err)
				}
				return
			default:
			}
			l.AfterFunc(time.Hour, func() {}).Stop()
			r, err := l.Add(p[0], eventloop.Readable, readyFunc(func(eventloop.Events) {}))
			if err != nil {
				continue
			}
			_ = r.Modify(0)
			_ = r.Remove()
		}
	}()
	<-turned
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	var stuck *eventloop.ShutdownError
	if err := l.Shutdown(ctx); !errors.As(err, &stuck) {
		t.Errorf("Shutdown: %v, want that nobody gave it a turn", err)
	}
	ended := make(chan error)
	go func() { ended <- l.Shutdown(context.Background()) }()
	if err := <-ended; err != nil {
		t.Errorf("the loop has not ended: %v", err)
	}
	other := newHost(t) // takes the numbers
	close(stop)
	<-left
	other.l.AfterFunc(time.Millisecond, func() {})
	other.want("its timer")
	shutdown(t, other.l)
	shutdown(t, h.l)
}

// syncBuffer is a log that is written by one goroutine and read by another.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A descriptor that was closed before Remove, while a duplicate of it lives, keeps the loop from
// sleeping: it is logged, once, by the number it had. One that is merely ready all the time is not.
func TestStrays(t *testing.T) {
	for _, how := range []string{"not removed", "removed too late", "its number is another's", "none"} {
		t.Run(how, func(t *testing.T) {
			sameFDs(t)
			log := new(syncBuffer)
			l := newLoop(t, eventloop.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
			p := pipe(t)
			fd := p[0]
			dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			unix.Write(p[1], []byte("x"))
			var called atomic.Int64
			r, err := l.Add(fd, eventloop.Readable, readyFunc(func(eventloop.Events) { called.Add(1) }))
			if err != nil {
				t.Fatal(err)
			}
			switch how {
			case "not removed":
				p.close(0)
			case "removed too late":
				p.close(0)
				if err := r.Remove(); !errors.Is(err, unix.EBADF) {
					t.Errorf("Remove: %v, want EBADF", err)
				}
			case "its number is another's":
				other := pipe(t)
				defer other.close(0)
				defer other.close(1)
				if err := unix.Dup3(other[0], fd, unix.O_CLOEXEC); err != nil { // closes fd first
					t.Fatal(err)
				}
			}
			l.Start()
			begin := time.Now()
			for !strings.Contains(log.String(), "closed before Remove") && time.Since(begin) < time.Minute {
				if how == "none" && l.Stats().Turns > 20_000 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			for turns := l.Stats().Turns; l.Stats().Turns < turns+20_000; {
				time.Sleep(time.Millisecond)
			}
			want := 1
			if how == "none" {
				want = 0
			}
			if n := strings.Count(log.String(), "closed before Remove"); n != want {
				t.Errorf("logged %d times, want %d: %s", n, want, log)
			}
			if want == 1 && !strings.Contains(log.String(), "fd="+strconv.Itoa(fd)+" ") {
				t.Errorf("the log does not name fd %d: %s", fd, log)
			}
			unix.Close(dup) // ends it
			shutdown(t, l)
			p.close(0)
			p.close(1)
		})
	}
}
