package mailbox

import (
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// A queue is a FIFO, whatever the order of pushes and pops.
func TestQueueIsFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var free nodeChain
		var model []any
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				next++
				q.push(next)
				model = append(model, next)
			},
			"pop": func(t *rapid.T) {
				msg, ok := q.pop(&free)
				if ok != (len(model) > 0) {
					t.Fatalf("pop: ok is %v with %d queued", ok, len(model))
				}
				if !ok {
					return
				}
				if msg != model[0] {
					t.Fatalf("popped %v, want %v", msg, model[0])
				}
				model = model[1:]
			},
			"": func(t *rapid.T) {
				if q.empty() != (len(model) == 0) || q.hasPushed() && q.empty() {
					t.Fatalf("empty %v, pushed %v with %d queued", q.empty(), q.hasPushed(), len(model))
				}
			},
		})
	})
}

// A nil is a message like any other here: Proto.Actor's queue cannot distinguish it from "empty".
func TestQueueHoldsNil(t *testing.T) {
	var q queue
	q.push(nil)
	if msg, ok := q.pop(new(nodeChain)); !ok || msg != nil {
		t.Errorf("popped %v, %v, want nil, true", msg, ok)
	}
}

// Messages of one producer stay in order among those of others, and none is lost.
func TestQueueWithManyProducers(t *testing.T) {
	const producers, each = 8, 5000
	type from struct{ producer, n int }
	var q queue
	var free nodeChain
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for n := range each {
				q.push(from{p, n})
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var next [producers]int
	total := 0
	for finished := false; ; {
		msg, ok := q.pop(&free)
		if !ok {
			if finished {
				break
			}
			select {
			case <-done:
				finished = true // one more look: all pushes are complete now
			default:
			}
			continue
		}
		finished = false
		m := msg.(from)
		if m.n != next[m.producer] {
			t.Fatalf("producer %d: got %d, want %d", m.producer, m.n, next[m.producer])
		}
		next[m.producer]++
		total++
	}
	if total != producers*each {
		t.Errorf("got %d messages, want %d", total, producers*each)
	}
}
