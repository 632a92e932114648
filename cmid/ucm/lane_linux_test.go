package ucm

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

// reaches waits until n commands of a kind have been written.
func (b *bench) reaches(c uabi.Command, n int) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		written := 0
		for _, w := range b.k.did() {
			if w == c {
				written++
			}
		}
		if written >= n {
			return
		}
	}
	b.Fatalf("waited in vain for %d commands %d", n, c)
}

// TestDestroyDropsQueuedConnect: a connect that has not begun never does. In real time it begins
// if the machine stops the test for stuckAfter.
func TestDestroyDropsQueuedConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.ownLanes()
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
		if err := id.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
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
		// all are created, all but one connect, one is destroyed
		if n := len(b.k.did()); n != (atWork+1)+atWork+1 {
			t.Errorf("%d commands, want %d: the connect that was dropped is not written", n, 2*atWork+2)
		}
	})
}

// ownLanes gives b separate lanes: the threads of a test in virtual time are no other test's.
func (b *bench) ownLanes() *lanes {
	own := &lanes{}
	b.in.lanes.removeUser()
	b.in.lanes = own
	own.addUser()
	return own
}

// calls are jobs that wait until they are let go.
type calls struct {
	begun atomic.Int64
	gate  chan struct{}
	over  sync.WaitGroup
}

func newCalls() *calls { return &calls{gate: make(chan struct{})} }

// put makes n calls run for a peer of a group.
func (c *calls) put(l *lane, group, peer any, n int) {
	for range n {
		c.over.Add(1)
		l.runJob(&job{
			group: group, peer: peer,
			call: func() error { c.begun.Add(1); <-c.gate; return nil },
			then: func(error) { c.over.Done() },
		})
	}
}

// release lets all go, and waits for their end.
func release(all ...*calls) {
	for _, c := range all {
		close(c.gate)
	}
	for _, c := range all {
		c.over.Wait()
	}
}

// settles waits until n calls have begun, and no others.
func (c *calls) settles(t *testing.T, why string, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.begun.Load() < int64(n) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(3 * stuckAfter) // time for one too many
	if got := c.begun.Load(); got != int64(n) {
		t.Fatalf("%s: %d calls are begun, want %d", why, got, n)
	}
}

func (l *lane) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workers
}

// idles waits until at most n threads are left.
func (l *lane) idles(t *testing.T, n int) {
	t.Helper()
	for range 10_000 {
		if l.size() <= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d threads are left when nothing is to do, want %d", l.size(), n)
}

func newLane(t *testing.T) *lane {
	l := &lane{}
	l.addUser(&budget{})
	t.Cleanup(func() {
		l.removeUser()
		l.idles(t, 0)
		if l.calls.Waiting()+l.calls.Running() != 0 {
			t.Errorf("what is left: %+v", l.calls)
		}
	})
	return l
}

// TestLaneGrows: as long as calls end, a few threads do. When none ends there are more, so that
// calls behind them are not delayed.
func TestLaneGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t)
		var over sync.WaitGroup
		most := 0
		for range 2000 {
			over.Add(1)
			l.runJob(&job{call: func() error { return nil }, then: func(error) { over.Done() }})
			most = max(most, l.size())
		}
		over.Wait()
		if most > atWork {
			t.Errorf("%d threads for calls that end, want %d at most", most, atWork)
		}
		const n = 5 * atWork / 2
		begin := time.Now()
		stuck := newCalls()
		stuck.put(l, nil, nil, n)
		quick := make(chan time.Duration, 1)
		l.runJob(&job{call: func() error { quick <- time.Since(begin); return nil }, then: func(error) {}})
		if took := <-quick; took < stuckAfter || took > 20*time.Second {
			t.Errorf("behind %d calls that wait a call was begun after %v", n, took)
		}
		release(stuck)
		l.idles(t, idleWorkers)
	})
}

// TestLaneIsSharedOut: callers whose answers do not come leave threads for others: a peer for
// those of its group, a group for the others, immediately.
func TestLaneIsSharedOut(t *testing.T) {
	l := newLane(t)
	hole, second, others := newCalls(), newCalls(), newCalls()
	honest := func(why string, group, peer any) {
		t.Helper()
		ended := make(chan error, 1)
		begin := time.Now()
		l.runJob(&job{group: group, peer: peer, call: func() error { return nil }, then: func(err error) { ended <- err }})
		<-ended
		t.Logf("%s has taken %v", why, time.Since(begin))
	}
	hole.put(l, "listener", "black hole", 2*mostWorkers)
	hole.settles(t, "one peer of one group", (mostWorkers+2)/3)
	honest("another peer's call", "listener", "honest")
	second.put(l, "listener", "second black hole", mostWorkers)
	second.settles(t, "another peer: a third of what was left", (mostWorkers+6)/9)
	honest("a third peer's call", "listener", "honest")
	honest("another group's call", "other listener", "honest")
	for peer := range mostWorkers {
		others.put(l, "listener", peer, 1)
	}
	others.settles(t, "a group: half", mostWorkers/2-int(hole.begun.Load()+second.begun.Load()))
	honest("another group's call", "other listener", "honest")
	release(hole, second, others)
}

// TestPeersOfAListener: of one listener's peers none has more than is left for the others: an
// honest call does not come behind all 320 that are forged.
func TestPeersOfAListener(t *testing.T) {
	l := newLane(t)
	forged := newCalls()
	forged.put(l, "listener", "forged", atWork)
	forged.settles(t, "the forged", atWork)
	ended := make(chan time.Time, 1)
	begin := time.Now()
	forged.put(l, "listener", "forged", mostWorkers/4)
	l.runJob(&job{group: "listener", peer: "honest", call: func() error { ended <- time.Now(); return nil }, then: func(error) {}})
	if took := (<-ended).Sub(begin); took > 20*time.Second || forged.begun.Load() > 3*atWork {
		t.Errorf("begun after %v, when %d forged were: it comes second", took, forged.begun.Load())
	}
	release(forged)
}

// TestThreadsOfTheProcess: however many loops connect to a black hole, the process has its threads,
// and each loop's others are served.
func TestThreadsOfTheProcess(t *testing.T) {
	const loops, each = 3, 600
	var begun, most atomic.Int64
	gate := make(chan struct{})
	var benches []*bench
	for range loops {
		b := newBench(t)
		b.k.answer = func(w wrote, _ []byte) error {
			if w.cmd == uabi.CommandConnect {
				if n := begun.Add(1); n > most.Load() {
					most.Store(n)
				}
				<-gate
				begun.Add(-1)
			}
			return nil
		}
		benches = append(benches, b)
		for range each {
			id := b.create().on(true)
			id.peer = cmid.MustAddr("10.0.0.1:7471")
			if err := b.connect(id); !errors.Is(err, cmid.ErrPending) {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(40 * stuckAfter) // to grow
	if n := most.Load(); n > 1024 {
		t.Errorf("%d threads wait for a black hole, want 1024 at most, whatever the number of loops", n)
	}
	for _, b := range benches {
		up := b.create().on(true)
		up.phase = connected
		if err := up.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		b.until("a destruction", func() bool { return len(b.up.done) > 0 })
	}
	close(gate)
	for _, b := range benches {
		b.until("the connects", func() bool { return len(b.in.busy) == 0 })
	}
}

// TestDetachedAreDestroyedInTheLane: identifiers without a loop are destroyed by the existing
// threads.
func TestDetachedAreDestroyedInTheLane(t *testing.T) {
	const n = 1500
	b := newBench(t)
	var begun, most atomic.Int64
	gate := make(chan struct{})
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == uabi.CommandDestroyID {
			most.Store(max(most.Load(), begun.Add(1)))
			<-gate
		}
		return nil
	}
	for range n {
		d, err := b.create().Detach()
		if err != nil {
			t.Fatal(err)
		}
		d.Destroy()
	}
	time.Sleep(20 * stuckAfter) // to grow
	if got := most.Load(); got > 1024 {
		t.Errorf("%d threads destroy identifiers, want 1024 at most", got)
	}
	close(gate)
	b.reaches(uabi.CommandDestroyID, n)
}

// TestCloseWithFullLanes: calls that have not begun never do, and their identifiers are destroyed;
// pending calls are named; and no thread is left when they have returned.
func TestCloseWithFullLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 600
		b := newBench(t)
		own := b.ownLanes()
		b.in.drv.closeWait = time.Second
		var begun atomic.Int64
		gate := make(chan struct{})
		b.k.answer = func(w wrote, _ []byte) error {
			if w.cmd == uabi.CommandConnect {
				begun.Add(1)
				<-gate
			}
			return nil
		}
		for range n {
			if err := b.connect(b.create().on(true)); !errors.Is(err, cmid.ErrPending) {
				t.Fatal(err)
			}
		}
		b.reaches(uabi.CommandConnect, (mostWorkers+2)/3)
		err := b.in.Close()
		var held *HeldError
		if !errors.As(err, &held) {
			t.Fatalf("close: %.200v; want those that are begun named", err)
		}
		b.reaches(uabi.CommandConnect, len(held.IDs)) // a thread may not be there yet
		if got := len(b.k.did()) - n - len(held.IDs); got != n-len(held.IDs) {
			t.Errorf("%d identifiers are given back, want the %d that had not begun", got, n-len(held.IDs))
		}
		close(gate)
		own.each(func(l *lane) { l.idles(t, 0) })
		if got := int(begun.Load()); got != len(held.IDs) {
			t.Errorf("%d connects were begun, and %d were named", got, len(held.IDs))
		}
		b.until("what the kernel kept", func() bool { return len(b.in.busy) == 0 })
	})
}
