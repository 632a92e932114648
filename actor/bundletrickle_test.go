package actor

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// Small bundles in flight are no reason for messages to wait, however long they take to complete:
// the bound on bundles is for the memory that these are sent from.
func TestSmallBundlesDoNotWait(t *testing.T) {
	onFlavors(t, func(w *world) {
		r := w.reach(1<<10, IDConfig{Credits: 200})
		w.f.Delay(time.Second)
		w.onLoop(w.rt, func(l *loop) {
			if err := w.conn(l, r.c).OneSided(r.op(verbs.Read, 0, 1)); err != nil {
				w.Error(err)
			}
		})
		const turns = 50
		if d := elapsed(func() {
			for i := range turns {
				w.submitted(w.rt, r.c, pattern(10, i), pattern(100, i))
			}
			for range 2 * turns {
				next[*Received](r.server)
			}
		}); d > 1500*time.Millisecond {
			w.Errorf("the messages came after %v", d)
		}
		time.Sleep(time.Minute)
		w.f.Delay(0)
		r.client.send(r.c, &DestroyID{})
		until[*Closed](r.client)
		until[*Closed](r.server)
	})
}
