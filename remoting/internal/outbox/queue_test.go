package outbox

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

func append1(t *testing.T, q *Queue, r *frame.Record) {
	t.Helper()
	if err := q.Append(r, r.Size()); err != nil {
		t.Fatal(err)
	}
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

// What a metered target is sent is what Allow lets, about; the others are sent theirs.
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
		if len(q.lanes) > ownMost || len(q.own) != len(q.lanes) || q.names > ownBytes {
			t.Errorf("%d lanes, names of %d bytes", len(q.lanes), q.names)
		}
		q.FreeAll()
		if len(q.lanes)+len(q.own)+q.names != 0 {
			t.Errorf("%d lanes are left, %d bytes", len(q.lanes), q.names)
		}
	}
}

// Whatever happens to a queue, each target's records come out in their order and once, and nothing
// is left behind.
func TestQueueKeepsOrder(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q := MakeQueue(2 << 20)
		put, got := make(map[string]uint32), make(map[string]uint32)
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
				}
			default:
				r := record(target, rnd.IntN(3<<10))
				r.TargetRequest = put[target] + 1
				if q.Room(target, r.Size()) {
					append1(t, &q, r)
					put[target]++
				}
			}
			if q.bytes > q.limit {
				t.Fatalf("seed %d: %d bytes wait", seed, q.bytes)
			}
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
		if q.Bytes() != 0 || len(q.own)+len(q.lanes)+len(q.shares)+q.names != 0 || !q.Empty() {
			t.Errorf("seed %d: left: %d bytes, %d lanes, %v", seed, q.Bytes(), len(q.lanes), q.shares)
		}
	}
}
