package ucm

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/hostlimits"
)

// limited gives b separate lanes, in a process that has others threads besides theirs, and may
// have so many in all.
func (b *bench) limited(most, others *atomic.Int64) *lanes {
	own := &lanes{}
	own.budget.measure = func() (hostlimits.Limit, bool) {
		used := others.Load() + own.budget.threads.Load()
		return hostlimits.Limit{Where: "/sys/fs/cgroup/x/pids.max", Max: uint64(most.Load()), Used: uint64(used)}, true
	}
	b.in.lanes.removeUser()
	b.in.lanes = own
	own.addUser()
	return own
}

// TestThreadsOfALimitedProcess: Go ends a process that may not have a thread that it needs.
// However many calls wait for a peer that does not answer, the lanes leave half of the threads
// that the process may still start. Every kind of call has a share, every call is answered.
func TestThreadsOfALimitedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 200
		var most, others atomic.Int64
		most.Store(60)
		others.Store(10)
		b := newBench(t)
		own := b.limited(&most, &others)
		var all []*calls
		own.each(func(l *lane) {
			c := newCalls()
			for peer := range each {
				c.put(l, peer%7, peer, 1)
			}
			all = append(all, c)
		})
		settled := func() (sum int64) {
			time.Sleep(20 * stuckAfter) // to grow
			synctest.Wait()
			for i, c := range all {
				n := c.begun.Load()
				if n == 0 {
					t.Errorf("lane %d has begun nothing", i)
				}
				sum += n
			}
			return sum
		}
		if n := settled(); n > (60-10)/2 {
			t.Errorf("%d threads, where 50 are free: want half of these at most", n)
		}
		before := settled()
		most.Store(600)
		if n := settled(); n <= before || n > (600-10)/2 {
			t.Errorf("%d threads after the limit was raised, and %d before", n, before)
		}
		release(all...)
		own.each(func(l *lane) { l.idles(t, idleWorkers) })
	})
}

// TestNoThreadAtAll: a command that needs a thread where there is none fails with the limit's
// name, and a request that cannot be accepted is rejected. Destructions wait, and start as soon as
// there is a thread.
func TestNoThreadAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most, others atomic.Int64
		most.Store(40)
		others.Store(40 - spareThreads)
		b := newBench(t)
		b.limited(&most, &others)
		connect := b.create().on(true)
		if err := b.connect(connect); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		b.until("the connect's answer", func() bool { return len(b.up.done) == 1 })
		err := b.up.done[0].err
		if e := (*ThreadsError)(nil); !errors.As(err, &e) || !errors.Is(err, unix.EAGAIN) || !strings.Contains(err.Error(), "/sys/fs/cgroup/x/pids.max is 40") {
			t.Errorf("a connect without a thread: %v, want a ThreadsError with the limit", err)
		}
		if connect.phase != unconnected {
			t.Error("it may still wait for the peer")
		}
		gone := b.create().on(true)
		gone.phase = connected
		if err := gone.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		time.Sleep(4 * stuckAfter)
		synctest.Wait()
		if n := b.k.destroyed(gone.kid); n != 0 {
			t.Error("it was destroyed without a thread")
		}
		request, q := b.asked()
		close(q.hold)
		if err := request.Do(&cmid.Accept{}); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		b.until("the accept's answer", func() bool { return len(b.up.done) == 2 })
		if e := (*ThreadsError)(nil); !errors.As(b.up.done[1].err, &e) || b.k.rejected(request.kid) != int(cmid.RejectConsumerDefined) {
			t.Errorf("an accept without a thread: %v, rejected with %d", b.up.done[1].err, b.k.rejected(request.kid))
		}
		others.Store(0)
		b.until("the destruction", func() bool { return len(b.up.done) == 3 })
		if b.k.destroyed(gone.kid) != 1 || b.up.done[2].err != nil {
			t.Errorf("destroyed %d times: %v", b.k.destroyed(gone.kid), b.up.done[2].err)
		}
		request.phase = unconnected
	})
}
