package datapath

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSendQueueKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q sendQueue
		var model []*Outgoing
		for range 200 {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				s := new(Outgoing)
				q.push(s)
				model = append(model, s)
			case 1:
				if len(model) == 0 {
					continue
				}
				if got := q.pop(); got != model[0] {
					t.Fatal("not the oldest")
				}
				model = model[1:]
			case 2:
				s := new(Outgoing)
				q.unpop(s)
				model = append([]*Outgoing{s}, model...)
			}
			if q.len() != len(model) {
				t.Fatalf("%d messages, want %d", q.len(), len(model))
			}
		}
	})
}
