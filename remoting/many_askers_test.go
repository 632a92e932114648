package remoting_test

import (
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// However many actors of a node ask one of another node, all are answered.
func TestManyAskers(t *testing.T) {
	const askers = 50_000
	a, b := start(t, remoting.Config{Overflow: remoting.Block}), start(t, remoting.Config{Expose: everything, Overflow: remoting.Block})
	b.spawn("echo", echo)
	var answered, other atomic.Int64
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(b.pid("echo"), text("?"))
		case *wrapperspb.StringValue:
			answered.Add(1)
		case *actor.DeadLetterResponse, *remoting.Refused:
			other.Add(1)
		}
	})
	for range askers {
		a.sys.Root.Spawn(props)
	}
	// On a busy machine all take longer than a minute, the next ones do not.
	for n := int64(0); n < askers && other.Load() == 0; {
		eventually(t, "no more are answered", func() bool { return answered.Load() > n || other.Load() > 0 })
		n = answered.Load()
	}
	if other.Load() > 0 {
		t.Errorf("%d were refused", other.Load())
	}
}
