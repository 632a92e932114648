package uverbs

import (
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// takenRecvs is a receive queue with a scripted number of receives that the kernel has not taken.
type takenRecvs int

func (q *takenRecvs) Put(uint64, place) bool { *q++; return true }
func (q *takenRecvs) Left() int              { return int(*q) }
func (q *takenRecvs) Close() error           { return nil }

// TestLimitBeforeTheCompletion: the kernel reports that the limit is reached when it takes a
// receive. The receive's completion may come later. When OnLimit is called, there must be room for
// another receive.
func TestLimitBeforeTheCompletion(t *testing.T) {
	f := newFake(t)
	ring := takenRecvs(2)
	s := &sharedQueue{
		dev: f.d, attr: verbs.SRQInitAttr{MaxWR: 2, OnLimit: func() {}}, ring: &ring,
		slots: []slot{{recv{id: 10}, true}, {recv{id: 11}, true}}, limit: 2,
	}
	ring-- // the kernel takes one
	s.limitReached()
	if s.low {
		t.Fatal("asked for a receive while there is no room for one")
	}
	if w, ok := s.takeReceive(0); !ok || w.id != 10 {
		t.Fatalf("completed %+v, %v, want 10", w, ok)
	}
	if !s.low || s.limit != 0 || len(f.d.low) != 1 {
		t.Errorf("not asked for a receive when its place is free: %+v", s)
	}
	if _, ok := s.takeReceive(1); !ok || len(f.d.low) != 1 {
		t.Errorf("asked %d times, want once for an Arm", len(f.d.low))
	}
}
