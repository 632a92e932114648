package actor

import (
	"testing"

	mem "github.com/rdmactor/rdmactor/actor/internal/memory"
)

// Whatever Limits.SendMemory is, the largest message that Established speaks of can be offered, in
// a region that may be larger than it.
func TestLargestOfSendMemory(t *testing.T) {
	const limit = 5_000_000
	onAllKinds(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 16 << 20, Credits: 2, eager: kib})
		n := 0
		w.onLoop(w.rt, func(l *loop) {
			for it := range l.ids {
				if it.conn != nil && it.conn.Flows() {
					n = it.conn.MaxMessage()
				}
			}
		})
		if n < limit*3/4 || mem.RegionSize(n) > limit || mem.RegionSize(n+1) <= limit {
			w.Errorf("the largest message has %d bytes, and the memory for all %d", n, limit)
		}
		p.client.send(p.c, NewSend(pattern(n, 1)))
		if g := p.server.any(); g.data != string(pattern(n, 1)) {
			w.Errorf("%d other bytes came", len(g.data))
		}
		p.client.send(p.c, NewSend(make([]byte, n+1)))
		f, _ := next[*SendFailed](p.client)
		is(w, f, ErrTooLarge)
		if !contains(f.Error(), "(Limits.SendMemory)") {
			w.Errorf("it does not name the field to change: %v", f)
		}
	}, Config{Limits: Limits{SendMemory: limit}})
}

// A connection that has waited for memory gets it for one message: not for all that its credits
// allow.
func TestAGrantIsForOneMessage(t *testing.T) {
	onAllKinds(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 20, Credits: 16, eager: kib})
		least := 0
		look := func() {
			w.onLoop(w.rt, func(l *loop) { least = min(least, l.HeldBudget.Free) })
		}
		for i := range 9 {
			p.client.send(p.c, NewSend(pattern(1<<20, i)))
		}
		for i := range 9 {
			look()
			if g := p.server.any(); g.data != string(pattern(1<<20, i)) {
				w.Fatalf("message %d is another one", i)
			}
			look()
		}
		if least < 0 {
			w.Errorf("the limit of %d bytes was exceeded by %d", w.rt.cfg.Limits.SendMemory, -least)
		}
	}, Config{Limits: Limits{SendMemory: 1<<20 + 1<<19}})
}
