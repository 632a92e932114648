//go:build !race

package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// The steady state of an echo between two loop-bound actors allocates nothing of ours.
func TestEchoAllocatesNothing(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		done := make(chan struct{}, 1)
		var left int
		echo := actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				ctx.Respond(NewSend(m.Data))
			}
		}, w.far.OnLoop())
		ping := actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *Received:
				if left--; left == 0 {
					done <- struct{}{}
					return
				}
				ctx.Respond(NewSend(m.Data))
			case int:
				left = m
				ctx.Send(p.c, NewSend(make([]byte, 64)))
			}
		}, w.rt.OnLoop())
		a, b := w.sys.Root.Spawn(ping), w.sys.Root.Spawn(echo)
		p.client.send(p.c, &Handover{To: a})
		p.server.send(p.s, &Handover{To: b})
		next[*Done](p.client)
		next[*Done](p.server)
		const rounds = 2000
		run := func() {
			w.sys.Root.Send(a, rounds)
			<-done
		}
		run()
		perEcho := testing.AllocsPerRun(3, run) / rounds
		if perEcho > 0.1 {
			w.Errorf("%.2f allocations per echo", perEcho)
		}
	})
}
