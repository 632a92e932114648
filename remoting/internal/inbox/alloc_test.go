//go:build !race

package inbox

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// In the steady state a message costs no allocation of the inbox's. (The race detector makes pools
// forget on purpose.)
func TestNoAllocationPerMessage(t *testing.T) {
	for _, name := range []string{"on the loop", "off the loop", "default"} {
		t.Run(name, func(t *testing.T) {
			r := newReal(t, Config{}, 1)
			pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, homes[name](r.rt)...))
			env := &actor.MessageEnvelope{Message: &note{}, Sender: r.link}
			burst := func() {
				r.do(func(in *Inbox) {
					for range 1000 {
						in.Deliver(pid, env, 64, nil)
					}
				})
			}
			burst()
			// A burst itself, its waking, and Touches or goroutines of the actor's cost a few.
			if allocs := testing.AllocsPerRun(100, burst); allocs > 50 {
				t.Errorf("%v allocations for 1000 messages", allocs)
			}
		})
	}
}
