package actor

import (
	"testing"
	"time"
)

// A connection that has little of the memory to send from goes on with it. Its bundles in flight
// that are not to complete alone do not keep it from its next message, whose memory others have.
func TestBundlesWithLittleMemory(t *testing.T) {
	for name, made := range map[string]func(testing.TB) IDConfig{
		"open": func(testing.TB) IDConfig { return IDConfig{} }, "secured": func(tb testing.TB) IDConfig { return secured(tb) },
	} {
		t.Run(name, func(t *testing.T) {
			onAllKinds(t, func(w *world) {
				cfg := made(w)
				cfg.MaxMessage, cfg.Credits = 1<<10, 64
				p := w.connect(cfg)
				taken := 0
				w.onLoop(w.rt, func(l *loop) {
					l.SendBudget.Reclaim()
					taken = l.SendBudget.Free - 4<<10
					l.SendBudget.TakeLarge(taken)
				})
				var messages [][]byte
				for i := range 60 {
					messages = append(messages, pattern(300, i))
				}
				w.submitted(w.rt, p.c, messages...)
				if d := elapsed(func() {
					for i, m := range messages {
						if g := p.server.any(); g.data != string(m) {
							w.Fatalf("message %d is %v", i, g)
						}
					}
				}); d > time.Second {
					w.Errorf("the messages came after %v", d)
				}
				settle()
				w.onLoop(w.rt, func(l *loop) { l.SendBudget.GiveLarge(taken) })
				w.closes(p)
			})
		})
	}
}
