package actor

import "testing"

// Whatever Limits.SendMemory is, the largest message that Established speaks of can be offered, in a region that may be larger than it.
func TestLargestOfSendMemory(t *testing.T) {
	const limit = 5_000_000
	onAllKinds(t, func(w *world) {
		p := w.connect(WithMessages(16<<20, 2), withEager(kib))
		n := 0
		w.onLoop(w.rt, func(l *loop) {
			for it := range l.ids {
				if it.conn != nil && it.conn.up {
					n = it.conn.maxSend
				}
			}
		})
		if n < limit*3/4 || sized(n) > limit || sized(n+1) <= limit {
			w.Errorf("the largest message has %d bytes, and the memory for all %d", n, limit)
		}
		p.client.send(p.c, NewSend(pattern(n, 1)))
		if g := p.server.any(); g.data != string(pattern(n, 1)) {
			w.Errorf("%d other bytes came", len(g.data))
		}
		p.client.send(p.c, NewSend(make([]byte, n+1)))
		f, _ := next[*SendFailed](p.client)
		is(w, f, ErrTooLarge)
	}, WithLimits(Limits{SendMemory: limit}))
}

// fitting is sized the other way round.
func TestFitting(t *testing.T) {
	for n := 4096; n < 1<<22; n += 1 + n/97 {
		if m := fitting(n); sized(m) > n || sized(m+1) <= n {
			t.Fatalf("%d bytes have room for %d", n, m)
		}
	}
}
