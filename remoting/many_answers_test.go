package remoting_test

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// However many answers to forwarded requests arrive together, all futures get theirs.
func TestManyForwardedAnswers(t *testing.T) {
	const many = 500
	expose := remoting.Expose{Reach: []string{"echo", "router"}}
	a, b, c := start(t, remoting.Config{}), start(t, remoting.Config{Expose: expose}), start(t, remoting.Config{Expose: expose})
	var all []func()
	c.spawn("echo", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			to := ctx.Sender()
			if all = append(all, func() { ctx.Send(to, m) }); len(all) == many {
				for _, answer := range all {
					answer()
				}
			}
		}
	})
	b.spawn("router", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Forward(c.pid("echo"))
		}
	})
	var asked []actor.Future
	for i := range many {
		asked = append(asked, a.sys.Root.RequestFuture(b.pid("router"), text(fmt.Sprint(i)), soon))
	}
	for i, f := range asked {
		if got, err := remoting.Result(f); err != nil || got.(*wrapperspb.StringValue).Value != fmt.Sprint(i) {
			t.Fatalf("%d: %v, %v", i, got, err)
		}
	}
}
