package reconnect_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/iwarp"
)

// A runtime that is shut down while actors wait in its line is not kept in memory by those, nor by
// the list of Links.
func TestLineKeepsNoRuntime(t *testing.T) {
	gone := shutDownInLine(t)
	for begin := time.Now(); gone.Value() != nil; runtime.GC() {
		if time.Since(begin) > 2*time.Minute {
			t.Fatal("the runtime is still in memory")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// shutDownInLine ends a runtime while actors wait for their turns.
func shutDownInLine(t *testing.T) (gone weak.Pointer[rdma.Runtime]) {
	log := slog.New(slog.DiscardHandler)
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	defer sys.Shutdown()
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	owner := sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	line, now := reconnect.LimiterOf(rt), time.Now()
	for ok := true; ok; { // every place is taken, for good
		ok, _ = line.Ticket(nil, "127.0.0.1:1", func() {}).Enter(now)
	}
	for range 3 {
		reconnect.Spawn(rt, owner, reconnect.Config{Dial: rdma.Dial{Addr: "127.0.0.1:1"}})
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, waiting := line.Inspect(); len(waiting) >= 3 {
			break
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatal("nobody waits in the line")
		}
	}
	if all := reconnect.Links(rt); len(all) != 3 {
		t.Errorf("links: %+v", all)
	} else { // a PID that was sent to leads to its actor
		sys.Root.Send(all[0].Who, &reconnect.Address{Addr: all[0].Addr})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := rt.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	return weak.Make(rt)
}
