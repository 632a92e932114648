package remoting_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// An answer that comes too late changes nothing.
func TestLateAnswerChangesNothing(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("slow", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			if m.Value == "slow" {
				time.Sleep(100 * time.Millisecond)
			}
			ctx.Respond(m)
		}
	})
	f := a.sys.Root.RequestFuture(b.pid("slow"), text("slow"), 20*time.Millisecond)
	if _, err := f.Result(); !errors.Is(err, actor.ErrTimeout) {
		t.Fatal(err)
	}
	allowed(t, a, b.pid("slow"))
	if res, err := f.Result(); res != nil || !errors.Is(err, actor.ErrTimeout) {
		t.Errorf("%v, %v", res, err)
	}
	if c := a.info(b).Counts; c.Late != 1 {
		t.Errorf("%+v", c)
	}
}
