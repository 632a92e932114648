package ucm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

// hold makes the kernel keep every c until the channel is closed.
func (b *bench) hold(c uabi.Command) chan struct{} {
	release := make(chan struct{})
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == c {
			<-release
		}
		return nil
	}
	return release
}

func (b *bench) connect(id *driverID) error {
	return id.Do(&cmid.Connect{Param: &cmid.ConnParam{QPNum: 5}})
}

// TestStuckConnects: connects that wait delay nothing else; one too many is refused in words, and
// one that has ended makes room.
func TestStuckConnects(t *testing.T) {
	const most = 3
	b := newBench(t, Config{MaxConnects: most})
	release := b.hold(uabi.CommandConnect)
	for range most {
		if err := b.connect(b.create().on(true)); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
	}
	one := b.create().on(true)
	err := b.connect(one)
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Waiting != most || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("connect number %d: %v, want a BusyError with EAGAIN", most+1, err)
	}
	up := b.create().on(true)
	up.phase = connected
	if err := up.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	b.until("the destruction of another identifier", func() bool { return len(b.up.done) == 1 })
	if b.up.done[0].h != up.h {
		t.Errorf("done %+v: the connects are still waiting", b.up.done)
	}
	close(release)
	b.until("the connects", func() bool { return len(b.up.done) == 1+most })
	if err := b.connect(one); !errors.Is(err, cmid.ErrPending) {
		t.Errorf("after the others have ended: %v", err)
	}
}

// TestDestroyBehindConnect: the destruction of a connecting identifier waits for that without a
// thread, and starts then. The queue pair is flushed immediately, and destroyed after the
// identifier.
func TestDestroyBehindConnect(t *testing.T) {
	b := newBench(t)
	release := b.hold(uabi.CommandConnect)
	id, q := b.withQP(true)
	if err := id.Do(&cmid.Connect{}); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	b.reaches(uabi.CommandConnect, 1)
	cmd := &cmid.DestroyID{}
	if err := id.Do(cmd); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	if n := b.k.destroyed(id.kid); n != 0 || q.destroyed != 0 {
		t.Error("destroyed while the kernel is at its connect: that call would wait as well")
	}
	b.in.mail.mu.Lock()
	away := b.in.mail.away
	b.in.mail.mu.Unlock()
	if away != 1 {
		t.Errorf("%d calls under way, want the connect only", away)
	}
	close(release)
	b.until("the destruction", func() bool { return len(b.up.done) == 1 })
	if d := b.up.done[0]; d.h != id.h || b.k.destroyed(id.kid) != 1 || q.destroyed != 1 {
		t.Errorf("done %+v, destroyed %d times, its queue pair %d times", d, b.k.destroyed(id.kid), q.destroyed)
	}
}

// TestCheapCommandsStayOnTheLoop: what cannot wait is done when Do returns.
func TestCheapCommandsStayOnTheLoop(t *testing.T) {
	b := newBench(t)
	id := b.create().on(false)
	for _, cmd := range []cmid.Command{
		&cmid.Listen{}, &cmid.ResolveRoute{}, &cmid.Reject{}, &cmid.Disconnect{}, &cmid.Notify{},
		&cmid.SetOption{Option: cmid.OptionTOS, Value: 3}, &cmid.DestroyID{},
	} {
		if err := id.Do(cmd); err != nil {
			t.Errorf("%T: %v", cmd, err)
		}
	}
	if n := b.k.destroyed(id.kid); n != 1 {
		t.Errorf("destroyed %d times", n)
	}
}

// TestCloseNamesWhoIsHeld: Close does not wait forever, names the pending commands, and everything
// else is destroyed.
func TestCloseNamesWhoIsHeld(t *testing.T) {
	b := newBench(t)
	b.in.drv.closeWait = 20 * time.Millisecond
	stuck, other := b.create().on(true), b.create()
	release := b.hold(uabi.CommandConnect)
	stuck.peer = cmid.MustAddr("10.0.0.1:7471")
	if err := b.connect(stuck); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	b.reaches(uabi.CommandConnect, 1)
	err := b.in.Close()
	var held *HeldError
	if !errors.As(err, &held) || len(held.IDs) != 1 || held.IDs[0].Handle != stuck.h || !errors.Is(err, unix.ETIMEDOUT) {
		t.Fatalf("close: %v, want a HeldError with the one that connects", err)
	}
	for _, word := range []string{"connect", "10.0.0.1:7471", "timed out"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if b.k.destroyed(other.kid) != 1 || !b.k.closed {
		t.Error("the others are destroyed, and the file is closed")
	}
	close(release)
	b.until("the connect's end", func() bool { return len(b.in.busy) == 0 })
	if len(b.up.done) != 0 {
		t.Errorf("got %+v after Close", b.up.done)
	}
}

// TestCloseWaits: a timely destruction is no error.
func TestCloseWaits(t *testing.T) {
	b := newBench(t)
	id := b.create().on(true)
	id.phase = half
	release := b.hold(uabi.CommandDestroyID)
	time.AfterFunc(30*time.Millisecond, func() { close(release) })
	if err := b.in.Close(); err != nil {
		t.Error(err)
	}
	if n := b.k.destroyed(id.kid); n != 1 {
		t.Errorf("destroyed %d times", n)
	}
}
