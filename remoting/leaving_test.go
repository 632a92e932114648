package remoting_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
)

// Two nodes that shut down at the same time have received what the other one has sent: neither
// reports messages of which that is not known.
func TestBothLeave(t *testing.T) {
	for i := range 100 {
		a, b := open(t, remoting.Config{Expose: everything}, 1), open(t, remoting.Config{Expose: everything}, 1)
		a.spawn("sink", func(actor.Context) {})
		b.spawn("echo", echo)
		if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for _, end := range [][2]*node{{a, b}, {b, a}} {
			both.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), soon)
				defer cancel()
				if end[0] == b { // at each point of the other one's end
					time.Sleep(time.Duration(i) * 20 * time.Microsecond)
				}
				for range 5 {
					end[0].sys.Root.Send(end[1].pid("sink"), text("last"))
				}
				if err := end[0].Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		a.close()
		b.close()
	}
}
