package uverbs

import (
	"context"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// refusing returns a queue pair of siw's whose device file answers ENOTCONN, until answer gives it
// another file.
func refusing(t *testing.T) (f *fake, events *[]verbs.QPEvent, turn func(while func() bool), answer func(path string)) {
	t.Helper()
	f = newFake(t)
	loop, err := eventloop.New(eventloop.Config{Name: t.Name()})
	f.must(err)
	t.Cleanup(func() { f.must(loop.Shutdown(context.Background())) })
	f.d.hw = kernelOf(t, os.DevNull)
	f.d.loop, f.d.siw, f.q.dirty = loop, true, false
	// not connected
	alone, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	f.must(err)
	f.must(unix.Dup3(alone, f.d.hw.(*kernel).fd, unix.O_CLOEXEC))
	f.must(unix.Close(alone))
	events = new([]verbs.QPEvent)
	f.q.OnEvent(func(ev verbs.QPEvent) { *events = append(*events, ev) })
	turn = func(while func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); while(); time.Sleep(time.Millisecond) {
			f.must(loop.Turn())
			if time.Now().After(deadline) {
				t.Fatal("nothing came of it")
			}
		}
	}
	answer = func(path string) {
		t.Helper()
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		f.must(err)
		f.must(unix.Dup3(fd, f.d.hw.(*kernel).fd, unix.O_CLOEXEC))
		f.must(unix.Close(fd))
	}
	return f, events, turn, answer
}

// TestSiwIsBusy: siw refuses an announcement while the queue pair's state is being changed. The
// announcement is repeated, and the queue pair does not end.
func TestSiwIsBusy(t *testing.T) {
	f, events, turn, answer := refusing(t)
	f.q.announceSends()
	f.q.announceSends() // for the work requests posted next
	if f.q.refused != 1 || f.q.state != verbs.QPRTS || len(*events) != 0 {
		t.Fatalf("refused %d times, state %d, got %v; want to wait", f.q.refused, f.q.state, *events)
	}
	turn(func() bool { return f.q.refused < 3 })
	answer(os.DevNull)
	turn(func() bool { return f.q.awaits })
	if f.q.refused != 0 || f.q.state != verbs.QPRTS || len(*events) != 0 {
		t.Errorf("refused %d times, state %d, got %v, when siw has taken it", f.q.refused, f.q.state, *events)
	}
}

// TestSiwRefuses: if siw refuses for a second, or for another reason, the queue pair ends and its
// owner is notified. If the queue pair has ended since, that is reported separately.
func TestSiwRefuses(t *testing.T) {
	f, events, turn, _ := refusing(t)
	f.q.announceSends()
	turn(func() bool { return f.q.state == verbs.QPRTS })
	if len(*events) != 1 || (*events)[0] != verbs.QPFatal {
		t.Errorf("got %v, want QPFatal", *events)
	}

	f, events, turn, _ = refusing(t)
	f.q.announceSends()
	f.q.markEnded()
	turn(func() bool { return f.q.awaits })
	if len(*events) != 0 {
		t.Errorf("got %v of a queue pair that has ended", *events)
	}

	f, events, _, answer := refusing(t)
	answer("/dev/full") // ENOSPC
	f.q.announceSends()
	if len(*events) != 1 || f.q.state != verbs.QPError {
		t.Errorf("got %v, state %d, after another error", *events, f.q.state)
	}
}
