package remoting_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// A future whose result is piped to a blocked actor delays no other, and its result reaches that
// actor when it continues.
func TestPipedToABlockedActor(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("echo", echo)
	block, got := make(chan struct{}), make(chan string, 100)
	full := a.spawn("full", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			<-block
			got <- m.Value
		}
	}, actor.WithMailbox(actor.Bounded(2)))
	filled := make(chan struct{})
	go func() { // until one finds no room
		defer close(filled)
		for range 4 {
			a.sys.Root.Send(full, text("filling"))
		}
	}()
	const n = 10
	answer := b.held("held")
	for range n {
		a.sys.Root.RequestFuture(b.pid("held"), text("piped"), soon).PipeTo(full)
	}
	answer() // not before: the result would go from here, and this would block
	allowed(t, a, b.pid("echo"))
	close(block)
	<-filled
	for piped := 0; piped < n; {
		if next := <-got; next == "piped" {
			piped++
		}
	}
}
