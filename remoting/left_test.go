package remoting_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// What a node has received belongs to it: a slow actor gets all of it, although the node that has
// sent it shuts down, and Patience is over. Shutdown returns nil because everything was received.
func TestReceivedOutlivesItsSender(t *testing.T) {
	for _, kind := range []string{"goroutines", "default"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const n = 60
			a, b := open(t, remoting.Config{}, 1), start(t, remoting.Config{Expose: everything, Patience: 4 * time.Second})
			var got atomic.Int64
			b.spawn("slow", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
					time.Sleep(150 * time.Millisecond)
					got.Add(1)
				}
			}, b.kinds()[kind]...)
			for range n {
				a.sys.Root.Send(b.pid("slow"), wrapperspb.Bytes(make([]byte, 12<<10)))
			}
			a.end()
			eventually(t, "what was received is lost", func() bool { return got.Load() == n })
			eventually(t, "the link stays", func() bool { return len(b.Peers()) == 0 })
		})
	}
}

// If it is not known whether a peer has received everything, Shutdown returns an error that says
// so.
func TestShutdownSaysWhatIsUnknown(t *testing.T) {
	a, b := open(t, remoting.Config{}, 1), run(t, freeName(t))
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	b.freeze()
	const n = 10
	for range n {
		a.sys.Root.Send(b.pid("echo"), text("x"))
	}
	ctx, cancel := timeout(time.Second)
	defer cancel()
	err := a.Shutdown(ctx)
	if err == nil {
		t.Fatal("Shutdown returned nil")
	}
	if !strings.Contains(err.Error(), "10 messages") {
		t.Error(err)
	}
	d := await(t, a, anyEvent[*remoting.Disconnected])
	if d.Unknown != n || d.Unsent != 0 {
		t.Errorf("%v", d)
	}
	b.thaw()
	a.close()
}
