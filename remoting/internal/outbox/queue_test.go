package outbox

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

func append1(t *testing.T, q *Queue, r *frame.Record) {
	t.Helper()
	if err := q.Append(r, r.Size()); err != nil {
		t.Fatal(err)
	}
}

// count returns the number of lanes that a queue lists.
func count(q *Queue) (n int) {
	for range q.own.all {
		n++
	}
	return n
}

// fillQueue puts records for a target as long as they find room.
func fillQueue(t *testing.T, q *Queue, target string, size int) (n int) {
	t.Helper()
	for r := record(target, size); q.Room(target, r.Size()); n++ {
		append1(t, q, r)
	}
	return n
}

// A target has room for as many bytes as are left for all others, and its records pass none of
// theirs: those of another target are taken in turn with them.
func TestTargetsShareTheQueue(t *testing.T) {
	q := MakeQueue(8 << 20)
	fillQueue(t, &q, "a", 10<<10)
	if q.Bytes() > 5<<20 || q.Bytes() < 4<<20 {
		t.Errorf("one target has %d bytes of 8 MiB", q.Bytes())
	}
	append1(t, &q, record("b", 100))
	took := 1
	for ; ; took++ {
		p, ok := q.Take()
		if !ok {
			t.Fatal("b's record is lost")
		}
		q.Gone(&p)
		if s := targets(&p); s[len(s)-1] == 'b' {
			break
		}
	}
	if took > 32 {
		t.Errorf("b's record is in packet %d", took)
	}
}

// A metered target gets about as much as Allow permits; the others get all.
func TestMeteredTargets(t *testing.T) {
	q := MakeQueue(8 << 20)
	q.Meter("a")
	n := fillQueue(t, &q, "a", 10<<10)
	if q.Ready() || q.Empty() {
		t.Errorf("ready: %v, empty: %v", q.Ready(), q.Empty())
	}
	append1(t, &q, record("b", 100))
	if p, ok := q.Take(); !ok || targets(&p) != "b" {
		t.Errorf("%s was taken", targets(&p))
	}
	q.Allow("a")
	sum := 0
	for {
		p, ok := q.Take()
		if !ok {
			break
		}
		sum += len(p.Bytes())
		q.Gone(&p)
	}
	if sum < Allowance || sum > Allowance+FrameBytes {
		t.Errorf("%d bytes were let, want about %d", sum, Allowance)
	}
	q.FreeAll()
	if q.Records() >= n || !q.Ready() {
		t.Errorf("%d of %d records wait", q.Records(), n)
	}
}

// However many names a peer meters, their number and bytes are bounded.
func TestMeteredNamesAreBounded(t *testing.T) {
	for _, long := range []string{"%d", "%01000d"} {
		q := MakeQueue(8 << 20)
		for i := range 3 * ownMost {
			q.Meter(fmt.Sprintf(long, i))
		}
		if len(q.own.of) > ownMost || count(&q) != len(q.own.of) || q.own.names > ownBytes {
			t.Errorf("%d lanes, names of %d bytes", len(q.own.of), q.own.names)
		}
		q.FreeAll()
		if count(&q)+len(q.own.of)+q.own.names != 0 {
			t.Errorf("%d lanes are left, %d bytes", len(q.own.of), q.own.names)
		}
	}
}

// wait is a sender that waits for room.
type wait struct {
	room <-chan struct{}
	at   Place
}

// counted compares a queue's counts with its lanes.
func counted(t *testing.T, q *Queue) {
	t.Helper()
	empty, ready, waiters := q.common.Empty(), !q.common.Empty(), q.common.Waiters()
	for o := range q.own.all {
		empty = empty && o.Empty()
		ready = ready || o.mayTake()
		waiters += o.Waiters()
	}
	if q.Empty() != empty || q.Ready() != ready || q.Waiters() != waiters {
		t.Fatalf("empty: %v, want %v; ready: %v, want %v; %d waiters, want %d", q.Empty(), empty, q.Ready(), ready, q.Waiters(), waiters)
	}
}

// Metered targets add no cost to the messages for others, nor to Meter and Free.
func TestMeteredTargetsCostNoTime(t *testing.T) {
	fastest := func(targets int) time.Duration {
		q := MakeQueue(8 << 20)
		for i := range targets {
			q.Meter(fmt.Sprint(i))
		}
		r, least := record("target", 100), time.Hour
		for range 20 {
			start := time.Now()
			for range 20 {
				q.Meter("other")
				append1(t, &q, r)
				p, _ := q.Take()
				q.Gone(&p)
				p.Free()
				q.Release(false)
				if !q.Empty() || q.Ready() {
					t.Fatal("something is left")
				}
				q.Free("other")
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	if few, many := fastest(1), fastest(ownMost-1); many > 20*few {
		t.Errorf("%v with one target, %v with many", few, many)
	}
}

// Small messages to many targets need no more memory than the limit: the queue counts its entries
// for these targets.
func TestPartsCount(t *testing.T) {
	const limit = 8 << 20
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // the pool's buffers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	q := MakeQueue(limit)
	n := 0
	for ; ; n++ {
		r := record(fmt.Sprint(n), 0)
		if !q.Room(r.Target, r.Size()) {
			break
		}
		append1(t, &q, r)
	}
	if q.Bytes() > limit || q.Bytes() < limit-1000 {
		t.Errorf("%d bytes", q.Bytes())
	}
	used := int(heap() - before)
	if used > limit*5/4 {
		t.Errorf("%d records need %d bytes", n, used)
	}
	t.Logf("%d records need %d bytes", n, used)
	for p, ok := q.Take(); ok; p, ok = q.Take() {
		q.Gone(&p)
		p.Free()
	}
	if q.Bytes() != 0 || len(q.shares) != 0 {
		t.Errorf("%d bytes are left, %d shares", q.Bytes(), len(q.shares))
	}
}

// Whatever happens to a queue, each target's records come out in their order and once, and nothing
// is left behind.
func TestQueueKeepsOrder(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q := MakeQueue(2 << 20)
		put, got := make(map[string]uint32), make(map[string]uint32)
		var waits []wait
		gone := func(p Packet) {
			p.Each(func(r *frame.Record) {
				if got[r.Target]++; r.TargetRequest != got[r.Target] {
					t.Fatalf("seed %d: %s's record %d came as %d", seed, r.Target, r.TargetRequest, got[r.Target])
				}
			})
			q.Gone(&p)
			p.Free()
		}
		for range 3000 {
			target := string(rune('a' + min(rnd.IntN(8), 3)))
			switch rnd.IntN(8) {
			case 0:
				if p, ok := q.Take(); ok && rnd.IntN(4) == 0 {
					q.Back(p)
				} else if ok {
					gone(p)
				}
			case 1:
				switch rnd.IntN(40) {
				case 0:
					q.Meter(target)
				case 1:
					q.Allow(target)
				case 2:
					q.Free(target)
				case 3:
					q.FreeAll()
				case 4:
					q.Filter(func(*frame.Record) bool { return true })
				case 5, 6, 7, 8, 9:
					room, at := q.Wait(target, rnd.IntN(100<<10))
					waits = append(waits, wait{room, at})
				}
				q.Release(false)
				waits = slices.DeleteFunc(waits, func(w wait) bool {
					if rnd.IntN(3) == 0 || !released(w.room) {
						return false
					}
					q.Unreserve(w.at)
					return true
				})
			default:
				r := record(target, rnd.IntN(3<<10))
				r.TargetRequest = put[target] + 1
				if q.Room(target, r.Size()) {
					append1(t, &q, r)
					put[target]++
				}
			}
			if q.bytes+q.reserved > q.limit {
				t.Fatalf("seed %d: %d bytes wait, and %d are reserved", seed, q.bytes, q.reserved)
			}
			counted(t, &q)
		}
		q.Release(true)
		for _, w := range waits {
			q.Unreserve(w.at)
		}
		q.FreeAll()
		for {
			p, ok := q.Take()
			if !ok {
				break
			}
			gone(p)
		}
		for target, n := range put {
			if got[target] != n {
				t.Errorf("seed %d: %d of %s's %d came", seed, got[target], target, n)
			}
		}
		if q.Bytes() != 0 || len(q.own.of)+count(&q)+len(q.shares)+q.own.names != 0 || !q.Empty() {
			t.Errorf("seed %d: left: %d bytes, %d lanes, %v", seed, q.Bytes(), len(q.own.of), q.shares)
		}
	}
}
