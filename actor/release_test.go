package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// An actor that releases a message which it has not retained fails, without an effect on others:
// not on the loop in the middle of whose input the message was delivered.
func TestReleaseWithoutRetain(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	restarts := make(chan struct{}, 1)
	p := connect(t, rt, newProbe(t, sys, rt.OnLoop(), func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *Received:
			m.Release()
		case *actor.Restarting:
			restarts <- struct{}{}
		}
	}), newProbe(t, sys, rt.OnLoop(), nil))
	p.client.send(p.c, NewSend([]byte("given back twice")))
	next[*Received](p.server)
	<-restarts
	p.client.send(p.c, &Close{})
	if c := until[*Closed](p.client); c[len(c)-1].msg.(*Closed).Delivered != 1 {
		t.Errorf("got %v", c)
	}
	if n := rt.Loops()[0].Panics; n > 0 {
		t.Errorf("%d of the loop's callbacks have panicked", n)
	}
}
