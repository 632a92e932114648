package eventloop_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

const someInterest = eventloop.Readable | eventloop.Writable

func TestStaleReportReachesNobody(t *testing.T) {
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p})
	defer shutdown(t, l)
	turn(t, l)
	old, err := l.Add(7, someInterest, readyFunc(func(ev eventloop.Events) { t.Errorf("the removed registration got %v", ev) }))
	if err != nil {
		t.Fatal(err)
	}
	p.Fire(7, eventloop.Readable) // taken from the kernel before the Remove
	if err := old.Remove(); err != nil {
		t.Fatal(err)
	}
	var got []eventloop.Events
	if _, err := l.Add(7, someInterest, readyFunc(func(ev eventloop.Events) { got = append(got, ev) })); err != nil {
		t.Fatal(err)
	}
	turn(t, l)
	if len(got) > 0 {
		t.Errorf("the new owner of slot and fd got the old owner's report %v", got)
	}
	p.Fire(7, eventloop.Writable)
	turn(t, l)
	if !slices.Equal(got, []eventloop.Events{eventloop.Writable}) {
		t.Errorf("the new owner got %v, want its own report", got)
	}
}

// TestRemoveInTheSameTurn has one handler remove the other, whose report is in the same batch.
func TestRemoveInTheSameTurn(t *testing.T) {
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p})
	defer shutdown(t, l)
	var second *eventloop.Registration
	first, err := l.Add(1, someInterest, readyFunc(func(eventloop.Events) {
		if err := second.Remove(); err != nil {
			t.Error(err)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	second, err = l.Add(2, someInterest, readyFunc(func(eventloop.Events) { t.Error("called after its Remove") }))
	if err != nil {
		t.Fatal(err)
	}
	p.Fire(1, eventloop.Readable)
	p.Fire(2, eventloop.Readable)
	turn(t, l)
	if n := l.Stats().FDs; n != 1 {
		t.Errorf("%d fds registered, want 1", n)
	}
	if err := second.Remove(); err != nil {
		t.Errorf("a second Remove: %v", err)
	}
	if err := second.Modify(0); !errors.Is(err, eventloop.ErrClosed) {
		t.Errorf("Modify after Remove: %v, want ErrClosed", err)
	}
	if err := first.Remove(); err != nil {
		t.Error(err)
	}
}

func TestAddErrorsAreTyped(t *testing.T) {
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p})
	start(t, l)
	for _, want := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EPERM} {
		p.Fail(eventlooptest.OpAdd, want)
		on(t, l, func() {
			_, err := l.Add(3, someInterest, readyFunc(nil))
			var op *eventloop.OpError
			if !errors.Is(err, want) || !errors.As(err, &op) || op.Op != "add" || op.FD != 3 {
				t.Errorf("add: %v, want an OpError{add, 3} with %v", err, want)
			}
		})
	}
	on(t, l, func() {
		r, err := l.Add(3, someInterest, readyFunc(nil))
		if err != nil {
			t.Fatalf("the fd that failed cannot be added any more: %v", err)
		}
		if _, err := l.Add(3, someInterest, readyFunc(nil)); !errors.Is(err, syscall.EEXIST) {
			t.Errorf("second add: %v, want EEXIST", err)
		}
		if n := l.Stats().FDs; n != 1 {
			t.Errorf("%d fds registered after one success, want 1", n)
		}
		p.Fail(eventlooptest.OpModify, syscall.ENOMEM)
		if err := r.Modify(0); !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("modify: %v, want ENOMEM", err)
		}
		if err := r.Modify(eventloop.Writable); err != nil {
			t.Error(err)
		}
		if got, ok := p.Interest(3); !ok || got != eventloop.Writable {
			t.Errorf("interest %v, %v after Modify, want writable", got, ok)
		}
	})
}

// fullPoller has no room for any fd, and keeps the tags it was given.
type fullPoller struct {
	spinPoller
	tags []uint64
}

func (p *fullPoller) Add(_ int, _ eventloop.Events, tag uint64) error {
	p.tags = append(p.tags, tag)
	return syscall.ENOSPC
}

// TestFailedAddLeavesNothing: repeated failures do not grow the loop's table.
func TestFailedAddLeavesNothing(t *testing.T) {
	p := &fullPoller{}
	l := newLoop(t, eventloop.Config{Poller: p})
	defer shutdown(t, l)
	for range 10 {
		if _, err := l.Add(1, 0, readyFunc(nil)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("add: %v, want ENOSPC", err)
		}
	}
	for i, tag := range p.tags {
		if slot := uint32(tag); slot != 0 {
			t.Errorf("add %d took slot %d, want the free one", i, slot)
		}
		if slices.Contains(p.tags[:i], tag) {
			t.Errorf("add %d used tag %#x again", i, tag)
		}
	}
}

func TestWaitIsRetriedAfterEINTR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p})
		l.Start()
		synctest.Wait()
		p.Fail(eventlooptest.OpWait, syscall.EINTR, syscall.EINTR)
		synctest.Wait()
		if turns := l.Stats().Turns; turns < 2 {
			t.Errorf("%d turns after two interruptions: the fault was not seen", turns)
		}
		on(t, l, func() {})
		shutdown(t, l)
	})
}

func TestLoopThatCannotWaitEnds(t *testing.T) {
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p, Logger: quiet})
	p.Fail(eventlooptest.OpWait, syscall.EBADF)
	if err := l.Run(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("Run: %v, want EBADF", err)
	}
	if err := l.Shutdown(t.Context()); !errors.Is(err, syscall.EBADF) {
		t.Errorf("Shutdown: %v, want the reason, EBADF", err)
	}
	if err := l.Post(func() {}); !errors.Is(err, eventloop.ErrClosed) {
		t.Errorf("Post: %v, want ErrClosed", err)
	}
	if !p.Closed() {
		t.Error("the poller was not closed")
	}
}

func TestEventsString(t *testing.T) {
	for ev, want := range map[eventloop.Events]string{
		0: "none", eventloop.Readable: "readable", eventloop.Writable | eventloop.Error: "writable|error",
		eventloop.Readable | eventloop.Hangup: "readable|hangup",
	} {
		if got := ev.String(); got != want {
			t.Errorf("Events(%d) = %q, want %q", ev, got, want)
		}
	}
}
