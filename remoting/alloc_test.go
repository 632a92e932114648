//go:build !race

package remoting_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// TestRequestAllocations: the allocations of a request on both sides. Proto.Actor's future is 8 of
// them and its envelope 1, the request and the two messages that are decoded are 5. That leaves the
// envelope at the echo, with the future's PID in it, the cache that Proto.Actor keeps in a PID, and
// one for the mailbox.
func TestRequestAllocations(t *testing.T) {
	server, client := start(t, remoting.Config{Expose: everything}), start(t, remoting.Config{})
	for kind, options := range server.kinds() {
		server.spawn("echo-"+kind, echo, options...)
		to := server.pid("echo-" + kind)
		request(t, client, to)
		if n := testing.AllocsPerRun(500, func() { request(t, client, to) }); n > 17.5 {
			t.Errorf("%s: %v allocations for a request", kind, n)
		}
	}
}

// TestMessageAllocations: a message without an answer allocates its decoded form, a struct and a
// string. Nothing is allocated at the sender.
func TestMessageAllocations(t *testing.T) {
	const burst = 1000
	server := start(t, remoting.Config{Expose: everything})
	client := start(t, remoting.Config{Overflow: remoting.Block})
	for kind, options := range server.kinds() {
		n, arrived := 0, make(chan struct{})
		server.spawn("sink-"+kind, func(ctx actor.Context) {
			if _, ok := ctx.Message().(*wrapperspb.StringValue); !ok {
				return
			}
			if n++; n%burst == 0 {
				arrived <- struct{}{}
			}
		}, options...)
		to, m := server.pid("sink-"+kind), text("hello")
		send := func() {
			for range burst {
				client.sys.Root.Send(to, m)
			}
			<-arrived
		}
		send()
		if n := testing.AllocsPerRun(50, send) / burst; n > 2.2 {
			t.Errorf("%s: %v allocations for a message", kind, n)
		}
	}
}
