package remoting_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// A request may be forwarded: to another node, back to the node of the future, and on from there.
// The last recipient may answer, once.
func TestForward(t *testing.T) {
	expose := remoting.Expose{Reach: []string{"echo", "router", "back"}}
	a, b, c := start(t, remoting.Config{Expose: expose}), start(t, remoting.Config{Expose: expose}), start(t, remoting.Config{Expose: expose})
	forward := func(to *actor.PID) actor.ReceiveFunc {
		return func(ctx actor.Context) {
			if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
				ctx.Forward(to)
			}
		}
	}
	twice := func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Respond(m)
			ctx.Respond(text("again"))
		}
	}
	c.spawn("echo", twice)
	a.spawn("echo", echo)
	b.spawn("router", forward(c.pid("echo")))
	b.spawn("back", forward(a.pid("echo")))
	a.spawn("back", forward(b.pid("router")))
	for name, to := range map[string]*actor.PID{"to another node": b.pid("router"), "back": b.pid("back"), "back and on": a.pid("back")} {
		if got, err := a.ask(to, text(name)); err != nil || got.(*wrapperspb.StringValue).Value != name {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	eventually(t, "the second answers were not counted", func() bool { return a.info(c).Counts.Late == 2 })
	if i := a.info(c); i.Futures != 0 {
		t.Errorf("%+v", i)
	}
}
