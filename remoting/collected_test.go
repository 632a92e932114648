package remoting_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
)

// An ended node is not kept in memory by the PIDs of other nodes that its actors hold.
func TestEndedNodeIsCollected(t *testing.T) {
	gone := endWithPIDs(t)
	for begin := time.Now(); gone.Value() != nil; runtime.GC() {
		if time.Since(begin) > soon {
			t.Fatal("the actor system is still in memory")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func endWithPIDs(t *testing.T) (gone weak.Pointer[actor.ActorSystem]) {
	t.Helper()
	a, b := open(t, remoting.Config{}, 1), open(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"echo"}}}, 1)
	b.spawn("echo", echo)
	to := b.pid("echo")
	asker := a.spawn("asker", func(ctx actor.Context) {
		if ctx.Message() == "ask" {
			ctx.Request(to, text("hello")) // the actor keeps the PID
		}
	})
	a.sys.Root.Send(asker, "ask")
	if _, err := a.ask(to, text("hello")); err != nil {
		t.Fatal(err)
	}
	a.end()
	b.end()
	return weak.Make(a.sys)
}
