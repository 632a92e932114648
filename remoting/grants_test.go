package remoting_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// An actor that was stopped and spawned again by the same name is answered, too.
func TestGrantOfNewActorOfTheName(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("echo", echo)
	me := actor.NewPID(a.Name(), "asker")
	for range 3 {
		pid, in := a.probe("asker")
		a.sys.Root.RequestWithCustomSender(b.pid("echo"), text("?"), me)
		a.sys.Root.RequestWithCustomSender(b.pid("echo"), text("?"), pid)
		next[*wrapperspb.StringValue](t, in)
		next[*wrapperspb.StringValue](t, in)
		if err := a.sys.Root.StopFuture(pid).Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// Actors that have stopped are not kept in memory because they have sent something. The inbox keeps
// some of them.
func TestGrantsKeepNoActor(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("echo", echo)
	const actors = 300
	var gone atomic.Int32
	for i := range actors {
		state := new([1 << 16]byte)
		runtime.AddCleanup(state, func(int) { gone.Add(1) }, 0)
		answered := make(chan bool)
		pid := a.spawn(fmt.Sprint("asker-", i), func(ctx actor.Context) {
			state[0]++
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Request(b.pid("echo"), text("?"))
			case *wrapperspb.StringValue:
				close(answered)
			}
		})
		<-answered
		if err := a.sys.Root.StopFuture(pid).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "they are kept", func() bool { runtime.GC(); return gone.Load() >= actors/2 })
}
