package actor

import (
	"runtime"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// An identifier has a full mailbox, and its owner has just died. A message that it cannot deliver
// to that owner comes back as a dead letter, which is not answered. Otherwise the answer to the
// answer would go round until the goroutine's stack is used up, which ends the program.
func TestFullMailboxOfADeadOwner(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		owner := newProbe(w, w.sys, nil, nil)
		p.client.send(p.c, &Handover{To: owner.pid})
		next[*Done](p.client)
		w.inTurn(func(ctx actor.Context) {
			for range 8 {
				ctx.Send(p.c, NewSend([]byte("x")))
			}
			ctx.Stop(owner.pid)
			for {
				if _, alive := w.sys.ProcessRegistry.GetLocal(owner.pid.Id); !alive {
					break
				}
				runtime.Gosched()
			}
			ctx.Send(p.c, "nonsense")
		})
		until[*Closed](p.server)
	}, Config{Limits: Limits{Mailbox: 8}})
}
