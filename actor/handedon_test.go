package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// An owner retains a message and hands it to another actor, which releases it. The message may then
// be used again before that actor's Receive has returned, so the actor's mailbox must no longer
// touch it.
func TestReleasedInAnotherActorsReceive(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		released, returns := make(chan struct{}), make(chan struct{})
		worker := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				m.Release()
				close(released)
				<-returns
			}
		}, w.far.OffLoop()))
		defer stop(w, w.sys, worker)
		p := w.connect()
		owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
		p.server.send(p.s, &Handover{To: owner.pid})
		settle()
		inHand, release, after := make(chan struct{}), make(chan struct{}), make(chan string, 1)
		owner.reactWith(func(ctx actor.Context) {
			switch m, ok := ctx.Message().(*Received); {
			case !ok:
			case string(m.Data) == "one":
				ctx.Send(worker, m.Retain())
			default:
				close(inHand)
				<-release
				after <- string(m.Data)
			}
		})
		p.client.send(p.c, NewSend([]byte("one")))
		<-released
		settle()
		p.client.send(p.c, NewSend([]byte("two")))
		<-inHand
		close(returns)
		settle()
		close(release)
		if s := <-after; s != "two" {
			w.Errorf("the owner's message became %q while it was being received", s)
		}
	})
}
