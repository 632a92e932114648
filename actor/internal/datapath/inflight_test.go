package datapath

import (
	"testing"

	"pgregory.net/rapid"
)

// A flight gives postings back in order and each once, whatever completes in silence, over the
// wrap of its numbers.
func TestFlightKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := ^uint32(0) - rapid.Uint32Range(0, 20).Draw(t, "numbers before the wrap")
		f := flight{head: start}
		type entry struct {
			number uint32
			send   *Outgoing
		}
		var model []entry
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				s := &Outgoing{}
				model = append(model, entry{f.Push(Posting{Send: s}), s})
			},
			"unpush": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip()
				}
				f.dropNewest()
				model = model[:len(model)-1]
			},
			"complete": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip()
				}
				k := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				number := model[k].number
				for _, want := range model[:k+1] {
					if p, ok := f.pop(number); !ok || p.Send != want.send {
						t.Fatalf("not the oldest posting up to %d", number)
					}
				}
				if _, ok := f.pop(number); ok {
					t.Fatalf("popped a posting behind %d", number)
				}
				model = model[k+1:]
			},
			"": func(t *rapid.T) {
				if f.Len() != len(model) {
					t.Fatalf("%d in flight, want %d", f.Len(), len(model))
				}
				for _, e := range model {
					if f.postingAt(e.number).Send != e.send {
						t.Fatalf("posting %d is another one", e.number)
					}
				}
			},
		})
	})
}
