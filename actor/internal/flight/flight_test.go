package flight

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

var when = time.Date(2026, 3, 4, 5, 6, 7, 89_000, time.UTC)

// A ring keeps the last records, in order, and knows how many there were before.
func TestRing(t *testing.T) {
	for _, made := range []int{0, 1, 3, 4, 5, 8, 11} {
		for _, want := range []int{0, 1, 3, 4, 100, math.MaxInt} {
			r := New(4)
			for i := range made {
				r.Note(when, uint64(i+1), Command, "connect", 0)
			}
			got, before := r.Copy(want).Records()
			n := min(made, want, 4)
			if len(got) != n || before != uint64(made-n) {
				t.Errorf("%d of %d: %d records and %d before, want %d and %d", want, made, len(got), before, n, made-n)
			}
			for i, rec := range got {
				if rec.ID != uint64(made-n+i+1) {
					t.Errorf("%d of %d: %+v at %d", want, made, rec, i)
				}
			}
		}
	}
}

// Without records there is no recorder, and nothing happens.
func TestNone(t *testing.T) {
	r := New(-1)
	r.Note(when, 1, Event, "DONE", 0)
	r.Transition(when, 1, states.Idle, states.Bound)
	if got, before := r.Copy(10).Records(); r != nil || len(got) != 0 || before != 0 {
		t.Errorf("%v, %d", got, before)
	}
}

// A dump is text for people and JSON for programs, with the same content.
func TestDump(t *testing.T) {
	r := New(8)
	r.Transition(when, 17, states.Connecting, states.Connected)
	r.Note(when, 17, Event, "ESTABLISHED", 0)
	r.Note(when, 0, Stall, "stalled", 0)
	r.Note(when, 3, End, "broken off", int32(unix.EPROTO))
	r.Note(when, 3, End, "broken off", 100_000)
	d := Dump{Loop: "rdma-0", Why: "stall", At: when}
	d.Records, d.Before = r.Copy(8).Records()
	for i := range d.Records {
		d.Records[i].At = d.Records[i].At.UTC()
	}
	want := `loop rdma-0 at 2026-03-04 05:06:07.000089: stall; 5 records, 0 before them
05:06:07.000089  id 17     transition connecting -> connected
05:06:07.000089  id 17     event      ESTABLISHED
05:06:07.000089  id 0      stall      stalled
05:06:07.000089  id 3      end        broken off EPROTO
05:06:07.000089  id 3      end        broken off errno 100000
`
	if got := d.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"Loop":"rdma-0"`, `"Kind":"transition","What":"connecting -\u003e connected"`, `"ID":17`, `"Errno":71`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s lacks %s", b, part)
		}
	}
	if s := Kind(200).String(); s != "Kind(200)" {
		t.Error(s)
	}
}

// The name of an actor, which a peer may have chosen, makes up no line of the text.
func TestDumpOfAnyName(t *testing.T) {
	r := New(1)
	r.Note(when, 0, Panic, "panicked", 0)
	d := Dump{Loop: "rdma\n-0", Why: "panic of actor x\n05:06:07.000089  id 1      event      ESTABLISHED\x1b[2J", At: when}
	d.Records, d.Before = r.Copy(1).Records()
	if s := d.String(); strings.Count(s, "\n") != 2 || strings.ContainsRune(s, 0x1b) || !strings.Contains(s, `actor x\n05`) {
		t.Errorf("%q", s)
	}
}

// A reader gets complete records while others write.
func TestConcurrent(t *testing.T) {
	r := New(64)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 5000 {
				r.Note(when, uint64(g), Command, "connect", int32(g))
			}
		})
	}
	for range 200 {
		records, _ := r.Copy(math.MaxInt).Records()
		for _, rec := range records {
			if rec.What != "connect" || rec.ID != uint64(rec.Errno) {
				t.Fatalf("half a record: %+v", rec)
			}
		}
	}
	all.Wait()
}

// A record costs no memory.
func TestNoAllocation(t *testing.T) {
	r := New(16)
	if n := testing.AllocsPerRun(1000, func() {
		r.Note(when, 1, Command, "connect", 0)
		r.Transition(when, 1, states.Idle, states.Bound)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNote(b *testing.B) {
	r := New(4096)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		r.Note(now, 1, Command, "connect", 0)
	}
}
