package cmid

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// undo takes back one transition, also one that has overwritten the oldest, and no more than one.
func TestHistoryUndo(t *testing.T) {
	for n := 1; n < 3*historyLen; n++ {
		var h history
		for i := range n {
			h.add(Transition{State: states.Bound, At: time.Duration(i)})
		}
		m, before := h.mark(), h.transitions()
		if len(before) != min(n, historyLen) || before[0].At != time.Duration(n-len(before)) || before[len(before)-1] != h.last() {
			t.Fatalf("%v after %d transitions", before, n)
		}
		if h.undo(m) {
			t.Fatal("undone without a transition")
		}
		failed := Transition{State: states.Failed, At: time.Hour}
		h.add(failed)
		if m.state != states.Bound || !h.undo(m) || !slices.Equal(h.transitions(), before) {
			t.Fatalf("%v from %v, want %v", h.transitions(), m.state, before)
		}
		h.add(failed)
		h.add(failed)
		if h.undo(m) {
			t.Fatal("two transitions were undone")
		}
	}
}
