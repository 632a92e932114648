package actor

import (
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// A Renew that does not return costs its own connection, which has a hole then, and no other on the
// loop.
func TestRenewThatDoesNotReturn(t *testing.T) {
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			onAllKinds(t, func(w *world) {
				good := w.connect()
				w.sys.Root.Stop(good.listener)
				until[*Closed](good.server)
				var kept *Received
				p := w.connect(IDConfig{MaxMessage: 1000, Credits: 1})
				p.server.reactWith(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok && kept == nil {
						kept = m.Retain()
					}
				})
				p.client.send(p.c, NewSend([]byte("first")))
				settle()
				s := NewSend([]byte("second"))
				s.Renew = func(p []byte) []byte {
					leave()
					return p
				}
				p.client.send(p.c, s)
				settle()
				p.client.send(p.c, NewSend([]byte("third")))
				settle()
				w.onLoop(w.far, func(*loop) { kept.Release() })
				settle()
				var pe *PanicError
				end := until[*Closed](p.client)
				failed := 0
				for _, g := range end {
					if f, ok := g.msg.(*SendFailed); ok {
						failed += f.Sends
					}
				}
				if failed != 2 {
					w.Errorf("%d messages of 2 were answered: %v", failed, end)
				}
				if c := end[len(end)-1].msg.(*Closed); !errors.As(c.Err, &pe) {
					w.Errorf("the end: %v", end)
				}
				for _, g := range until[*Closed](p.server) {
					if m, ok := g.msg.(*Received); ok && g.data != "first" {
						w.Errorf("behind the hole came %v", m)
					}
				}
				w.inTurn(func(ctx actor.Context) { ctx.Send(good.c, NewSend([]byte("fine"))) })
				if m := good.server.any(); m.data != "fine" {
					w.Fatalf("got %v", m)
				}
			})
		})
	}
}
