package ring

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRingIsAQueue compares random calls with a slice.
func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Ring[*int]
		var model []*int
		for range 200 {
			v := new(int)
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what == 0:
				r.PushFront(v)
				model = slices.Insert(model, 0, v)
			case what <= 2:
				r.Push(v)
				model = append(model, v)
			case len(model) == 0:
			case what == 3:
				if got := r.Pop(); got != model[0] {
					t.Fatal("Pop gave another one than the oldest")
				}
				model = model[1:]
			default:
				r.DropLast()
				model = model[:len(model)-1]
			}
			if r.Len() != len(model) {
				t.Fatalf("%d are in, want %d", r.Len(), len(model))
			}
			for i, want := range model {
				if *r.At(i) != want {
					t.Fatalf("another one is %d places behind the oldest", i)
				}
			}
			kept := 0
			for _, p := range r.buf {
				if p != nil {
					kept++
				}
			}
			if kept != len(model) {
				t.Fatalf("the memory has %d elements of %d", kept, len(model))
			}
		}
	})
}

// TestSlotsAreUsedAgain: a dropped value stays in its slot for the next one, and the limit bounds
// the number of slots.
func TestSlotsAreUsedAgain(t *testing.T) {
	const limit = 5
	var r Ring[[]byte]
	for range limit {
		s := r.Slot(limit)
		*s = append(*s, make([]byte, 100)...)
	}
	if len(r.buf) != limit {
		t.Errorf("memory for %d, want for %d", len(r.buf), limit)
	}
	if r.Slot(limit) != nil {
		t.Error("there is a slot more than the limit")
	}
	r.Drop()
	if s := r.Slot(limit); cap(*s) < 100 {
		t.Error("the place was cleared: what it had cannot be used again")
	}
	if got := testing.AllocsPerRun(100, func() {
		r.Drop()
		s := r.Slot(limit)
		*s = append((*s)[:0], 1, 2, 3)
	}); got != 0 {
		t.Errorf("%v allocations in a ring that is as long as it gets", got)
	}
}

// TestRingGivesItsMemoryUp: set to the zero Ring it is empty, and works.
func TestRingGivesItsMemoryUp(t *testing.T) {
	var r Ring[int]
	for i := range 100 {
		r.Push(i)
	}
	r = Ring[int]{}
	r.PushFront(7)
	if r.Len() != 1 || r.Pop() != 7 || r.Len() != 0 {
		t.Error("a ring that was set to zero is not an empty one")
	}
}

func BenchmarkPushPop(b *testing.B) {
	var r Ring[[12]uint64] // about a work request
	for range 20 {
		r.Push([12]uint64{})
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Push(r.Pop())
	}
}
