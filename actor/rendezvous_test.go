package actor

import (
	"testing"
	"time"
)

// A peer may arrange that there is always a message which is still being read. This side does not
// keep messages that were delivered before.
func TestArrivalsDoNotPileUp(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const n, credits = 640, 32
		p := w.connect(IDConfig{MaxMessage: 64 << 10, Credits: credits, eager: kib})
		// so that each is on its way for longer than it takes until the next comes
		w.f.Delay(time.Millisecond)
		for i := range n {
			p.client.send(p.c, NewSend(pattern(2*kib, i)))
			time.Sleep(700 * time.Microsecond)
		}
		for i := range n {
			if g := p.server.any(); g.data != string(pattern(2*kib, i)) {
				w.Fatalf("message %d came as another one", i)
			}
		}
		w.onLoop(w.far, func(l *loop) {
			if room := w.conn(l, p.s).In.Arrivals.Waiting.Cap(); room > 2*credits {
				w.Errorf("after %d messages there is room for %d that wait, want %d", n, room, 2*credits)
			}
		})
	})
}
