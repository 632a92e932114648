package remoting_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// blocked spawns an actor that consumes nothing until release is called, and counts its messages.
func (n *node) blocked(name string, options ...actor.PropsOption) (got *atomic.Int64, release func()) {
	n.t.Helper()
	got = new(atomic.Int64)
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	n.t.Cleanup(release)
	n.spawn(name, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			<-gate
			got.Add(1)
		}
	}, options...)
	return got, release
}

// Targets that take nothing, and are sent much more than their node and the queue hold, do not stop
// requests to another one, however patient both nodes are. Messages accepted for them arrive when
// they continue.
func TestOneTargetStarvesNoOther(t *testing.T) {
	for _, slow := range []int{1, 3} {
		for _, kind := range []string{"goroutines", "default"} {
			t.Run(fmt.Sprint(slow, " ", kind), func(t *testing.T) {
				cfg := remoting.Config{Expose: everything, Patience: time.Hour}
				a, b := start(t, cfg), start(t, cfg)
				b.spawn("echo", echo)
				a.events.stop()
				b.events.stop()
				if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
					t.Fatal(err)
				}
				var got []*atomic.Int64
				var release []func()
				for i := range slow {
					g, r := b.blocked(fmt.Sprint("slow", i), b.kinds()[kind]...)
					got, release = append(got, g), append(release, r)
				}
				const n = 4000
				large := wrapperspb.Bytes(make([]byte, 10<<10))
				for range n {
					for i := range slow {
						a.sys.Root.Send(b.pid(fmt.Sprint("slow", i)), large)
					}
				}
				for i := range 100 {
					if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
						t.Fatalf("request %d: %v", i, err)
					}
				}
				accepted := int64(a.info(b).Counts.Sent) - 101
				if accepted >= int64(slow*n) {
					t.Error("everything was accepted: the test shows nothing")
				}
				for _, r := range release {
					r()
				}
				eventually(t, "what was accepted did not arrive", func() bool {
					var sum int64
					for _, g := range got {
						sum += g.Load()
					}
					return sum == accepted
				})
			})
		}
	}
}

// With Block, only senders to such a target wait.
func TestBlockedSendersStarveNoOther(t *testing.T) {
	cfg := remoting.Config{Expose: everything, Patience: time.Hour, Overflow: remoting.Block}
	a, b := start(t, cfg), start(t, cfg)
	b.spawn("echo", echo)
	got, release := b.blocked("slow", b.rt.OffLoop())
	const senders, each = 4, 1000
	large := wrapperspb.Bytes(make([]byte, 10<<10))
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for range each {
				a.sys.Root.Send(b.pid("slow"), large)
			}
		})
	}
	eventually(t, "the senders do not wait", func() bool { return a.Blocked(b.Name()) == senders })
	for i := range 100 {
		if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	release()
	all.Wait()
	eventually(t, "what was sent did not arrive", func() bool { return got.Load() == senders*each })
}
