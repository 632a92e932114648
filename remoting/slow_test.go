package remoting_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// The messages that wait for a slow actor when its node shuts down become dead letters, one each.
func TestShutdownBesideSlowActor(t *testing.T) {
	const n = 100
	a, b := start(t, remoting.Config{}), open(t, remoting.Config{Expose: everything}, 1)
	began, block := make(chan struct{}, n), make(chan struct{})
	b.spawn("slow", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			began <- struct{}{}
			<-block
		}
	}, b.rt.OffLoop())
	b.spawn("echo", echo)
	for range n {
		a.sys.Root.Send(b.pid("slow"), wrapperspb.Bytes(make([]byte, 8<<10)))
	}
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil { // they have come
		t.Fatal(err)
	}
	ctx, cancel := timeout(soon)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	close(block)
	letters := func() (sum int) {
		b.events.mu.Lock()
		defer b.events.mu.Unlock()
		for _, ev := range b.events.list {
			if e, ok := ev.(*actor.DeadLetterEvent); ok && e.PID.Id == "slow" {
				sum++
			}
		}
		return sum
	}
	eventually(t, "a message was neither received nor a dead letter", func() bool { return letters()+len(began) == n })
	if letters() == 0 {
		t.Error("nothing has waited")
	}
	b.close()
}
