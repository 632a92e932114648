package remoting_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
)

// Shutdown waits for subscribers of events for a moment after its context has ended, because they
// may get the last events only then. One that does not return is an error.
func TestShutdownWaitsForSubscribers(t *testing.T) {
	for name, returns := range map[string]bool{"after the context's end": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := open(t, remoting.Config{Expose: everything}, 1)
			defer n.close()
			ctx, cancel := timeout(300 * time.Millisecond)
			defer cancel()
			over := make(chan struct{})
			defer close(over)
			n.sys.EventStream.Subscribe(func(ev any) {
				if _, ok := ev.(*remoting.Disconnected); !ok {
					return
				}
				if <-ctx.Done(); !returns {
					<-over
				}
			})
			s := meet(t, n, "takes nothing:1").introduce()
			s.retains.Store(true)
			for range 3 { // whose loss is no error
				n.sys.Root.Send(actor.NewPID("takes nothing:1", "x"), &actor.Touched{Who: actor.NewPID("x", strings.Repeat("x", 60<<10))})
			}
			defer s.release()
			err := n.Shutdown(ctx)
			if returns && err != nil {
				t.Errorf("Shutdown returns %v", err)
			}
			if !returns && (!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "subscriber")) {
				t.Errorf("Shutdown returns %v, want an error about the subscriber", err)
			}
		})
	}
}
