package ucm

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
)

// reaches waits until n commands of a kind have been written.
func (b *bench) reaches(c uabi.Command, n int) {
	b.Helper()
	for range 2000 {
		written := 0
		for _, w := range b.k.did() {
			if w == c {
				written++
			}
		}
		if written >= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.Fatalf("waited in vain for %d commands %d", n, c)
}

// TestDestroyDropsQueuedConnect: a connect that has not begun does not begin any more.
func TestDestroyDropsQueuedConnect(t *testing.T) {
	b := newBench(t)
	release := b.hold(uabi.CommandConnect)
	for range atWork {
		if err := b.connect(b.create().on(true)); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
	}
	b.reaches(uabi.CommandConnect, atWork)
	id := b.create().on(true)
	if err := b.connect(id); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	if err := b.in.Do(id.h, &cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	b.until("the destruction", func() bool { return len(b.up.done) == 1 && id.away == nil })
	if n := slices.Index(b.k.did(), uabi.CommandDestroyID); n < 0 || b.k.destroyed(id.kid) != 1 {
		t.Error("it is not destroyed")
	}
	if id.phase != unconnected {
		t.Error("it has connected")
	}
	close(release)
	b.until("the others", func() bool { return len(b.in.busy) == 0 })
	if n := len(b.k.did()); n != (atWork+1)+atWork+1 { // all are created, all but one connect, one is destroyed
		t.Errorf("%d commands, want %d: the connect that was dropped is not written", n, 2*atWork+2)
	}
}

// stuck is a lane whose calls wait until they are let go.
func stuck(l *lane, n int) (begun *atomic.Int64, release func()) {
	begun = new(atomic.Int64)
	gate := make(chan struct{})
	var over sync.WaitGroup
	for range n {
		over.Add(1)
		l.run(&job{call: func() error { begun.Add(1); <-gate; return nil }, then: func(error) { over.Done() }})
	}
	return begun, func() { close(gate); over.Wait() }
}

func (l *lane) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workers
}

// TestLaneGrows: as long as calls end, a few threads do. When none ends there are more, so that calls behind them are not held up.
func TestLaneGrows(t *testing.T) {
	l := newLane()
	defer l.stop()
	var over sync.WaitGroup
	most := 0
	for range 2000 {
		over.Add(1)
		l.run(&job{call: func() error { return nil }, then: func(error) { over.Done() }})
		most = max(most, l.size())
	}
	over.Wait()
	if most > atWork {
		t.Errorf("%d threads for calls that end, want %d at most", most, atWork)
	}
	const n = 5 * atWork / 2
	begin := time.Now()
	begun, release := stuck(l, n)
	quick := make(chan time.Duration, 1)
	l.run(&job{call: func() error { quick <- time.Since(begin); return nil }, then: func(error) {}})
	took := <-quick
	if begun.Load() != n || took < stuckAfter || took > 2*time.Second {
		t.Errorf("behind %d calls that wait, %d of them begun, a call was begun after %v", n, begun.Load(), took)
	}
	release()
	for range 1000 {
		if l.size() <= idleWorkers {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d threads are left when nothing is to do, want %d", l.size(), idleWorkers)
}
