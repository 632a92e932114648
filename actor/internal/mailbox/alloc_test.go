//go:build !race

package mailbox

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// In the steady state a message costs no allocation, whichever way it takes. (The race detector
// makes pools forget on purpose.)
func TestNoAllocationPerMessage(t *testing.T) {
	r := newRig(t, 1)
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop()))
	m := r.boxOf(pid)
	env, held := enveloped(&event{}), enveloped(&holding{})
	c := &Carrier{Message: env, Consumed: func() {}}
	for name, send := range map[string]func(){
		"deliver":         func() { m.Deliver(env) },
		"deliver holding": func() { m.Deliver(held) },
		"deliver while behind": func() {
			m.busy = true
			m.Deliver(env)
			m.busy = false
			m.Run(10)
		},
		"post event": func() { m.PostUserMessage(env); m.Run(10) },
		"post data":  func() { m.PostUserMessage(held); m.Run(10) },
		"send":       func() { r.sys.Root.Send(pid, env); m.Run(10) },
		"carry":      func() { m.Carry(c); m.Run(10) },
		"burst": func() {
			for range 1000 {
				m.PostUserMessage(env)
			}
			m.Run(1000)
		},
	} {
		on(t, r.loops[0], func() {
			m.state.Store(scheduled) // the turns are given here
			if allocs := testing.AllocsPerRun(1000, func() { send(); m.state.Store(scheduled) }); allocs != 0 {
				t.Errorf("%s: %v allocations, want 0", name, allocs)
			}
			m.state.Store(idle)
		})
	}
	stop(t, r.sys, pid)
}
