package eventloop_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// openFDs counts this process's file descriptors.
func openFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// pipeFDs are a pipe's ends, reading and writing.
type pipeFDs [2]int

// pipe opens a non-blocking pipe; the test's end closes the ends that are still open.
func pipe(t *testing.T) *pipeFDs {
	t.Helper()
	p := new(pipeFDs)
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close(0); p.close(1) })
	return p
}

func (p *pipeFDs) close(end int) {
	if p[end] >= 0 {
		unix.Close(p[end])
		p[end] = -1
	}
}

func TestPipe(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	p := pipe(t)
	r, w := p[0], p[1]
	events := make(chan eventloop.Events, 1)
	var reg *eventloop.Registration
	on(t, l, func() {
		var err error
		reg, err = l.Add(r, eventloop.Readable, readyFunc(func(ev eventloop.Events) {
			var buf [1]byte
			if n, _ := unix.Read(r, buf[:]); n == 0 {
				// the end of the stream stays readable forever
				if err := reg.Remove(); err != nil {
					t.Error(err)
				}
			}
			events <- ev
		}))
		if err != nil {
			t.Error(err)
		}
	})
	for range 3 { // level-triggered: one byte per report
		if _, err := unix.Write(w, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if ev := <-events; ev != eventloop.Readable {
			t.Errorf("the pipe was reported %v, want readable", ev)
		}
	}
	p.close(1)
	if ev := <-events; ev != eventloop.Hangup {
		t.Errorf("a pipe without writers was reported %v, want hangup", ev)
	}
	on(t, l, func() {
		if n := l.Stats().FDs; n != 0 {
			t.Errorf("%d fds registered, want 0", n)
		}
	})
}

func TestAddOfWhatCannotBeWatched(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := pipe(t)
	r, w := p[0], p[1]
	p.close(0)
	on(t, l, func() {
		if _, err := l.Add(r, eventloop.Readable, readyFunc(nil)); !errors.Is(err, unix.EBADF) {
			t.Errorf("a closed fd: %v, want EBADF", err)
		}
		if _, err := l.Add(int(file.Fd()), eventloop.Readable, readyFunc(nil)); !errors.Is(err, unix.EPERM) {
			t.Errorf("a regular file: %v, want EPERM", err)
		}
		reg, err := l.Add(w, 0, readyFunc(func(eventloop.Events) {}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Add(w, 0, readyFunc(nil)); !errors.Is(err, unix.EEXIST) {
			t.Errorf("a registered fd: %v, want EEXIST", err)
		}
		if err := reg.Remove(); err != nil {
			t.Error(err)
		}
	})
	on(t, l, func() {}) // the loop lives
}

// TestTimerDoesNotSpin: epoll_wait counts milliseconds; the rest of one must not be polled away.
func TestTimerDoesNotSpin(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	const d = 5*time.Millisecond + 500*time.Microsecond
	fired := make(chan time.Duration)
	on(t, l, func() {
		begin := time.Now()
		l.AfterFunc(d, func() { fired <- time.Since(begin) })
	})
	before := l.Stats().Turns
	if took := <-fired; took < d {
		t.Errorf("fired after %v, before its %v", took, d)
	}
	if turns := l.Stats().Turns - before; turns > 3 {
		t.Errorf("%d turns to wait for one timer", turns)
	}
}

// TestCloseBeforeRemove breaks the rule, and another file reuses the number: the late Remove must
// not affect it.
func TestCloseBeforeRemove(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	r, other := pipe(t)[0], pipe(t)
	got := make(chan eventloop.Events, 1)
	on(t, l, func() {
		old, err := l.Add(r, eventloop.Readable, readyFunc(func(ev eventloop.Events) { t.Errorf("the old owner got %v", ev) }))
		if err != nil {
			t.Fatal(err)
		}
		// closes r, and gives its number to a copy of the other
		if err := unix.Dup3(other[0], r, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		var reg *eventloop.Registration
		reg, err = l.Add(r, eventloop.Readable, readyFunc(func(ev eventloop.Events) {
			if err := reg.Remove(); err != nil {
				t.Error(err)
			}
			got <- ev
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := old.Remove(); err != nil {
			t.Error(err)
		}
	})
	if _, err := unix.Write(other[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	if ev := <-got; ev != eventloop.Readable {
		t.Errorf("the new owner got %v, want readable", ev)
	}
}

func TestNewOutOfFDs(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	before := openFDs(t)
	for room := range 2 { // none for epoll, then none for the eventfd
		fd, err := unix.Dup(0) // the lowest free number is the limit
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(fd + room), Max: old.Max}); err != nil {
			t.Fatal(err)
		}
		_, err = eventloop.New()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
		var op *eventloop.OpError
		if !errors.Is(err, unix.EMFILE) || !errors.As(err, &op) || op.Op != "open" {
			t.Errorf("New with room for %d fds: %v, want OpError{open} with EMFILE", room, err)
		}
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d fds open, %d before: New that fails must give back what it opened", after, before)
	}
}

func TestShutdownClosesEverything(t *testing.T) {
	before := openFDs(t)
	for range 10 {
		l := newLoop(t, eventloop.Config{})
		l.Start()
		on(t, l, func() {})
		shutdown(t, l)

		hosted := newLoop(t, eventloop.Config{})
		if _, err := hosted.FD(); err != nil {
			t.Fatal(err)
		}
		turn(t, hosted)
		shutdown(t, hosted)

		shutdown(t, newLoop(t, eventloop.Config{})) // never ran
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d fds open, %d before", after, before)
	}
}
