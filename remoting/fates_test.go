package remoting_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
)

// A request, and a watch, of a node that is not there fails with the first dial. Other messages
// wait for Patience, and are dead letters then.
func TestNodeIsNotThere(t *testing.T) {
	t.Parallel()
	const patience = 5 * time.Second // an immediate failure takes much less, on a busy machine too
	a := start(t, remoting.Config{Patience: patience})
	nobody := actor.NewPID(freeName(t), "x")
	began := time.Now()
	sender, in := a.probe("sender")
	a.sys.Root.Send(nobody, text("of nobody"))
	a.sys.Root.RequestWithCustomSender(nobody, text("of the sender"), sender)
	if res, err := a.ask(nobody, text("?")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", res, err)
	}
	terminated := make(inbox, 8)
	a.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(nobody)
		case *actor.Terminated:
			terminated <- m
		}
	})
	if m := next[*actor.Terminated](t, terminated); m.Why != actor.TerminatedReason_AddressTerminated || !m.Who.Equal(nobody) {
		t.Errorf("%v", m)
	}
	if d := time.Since(began); d > patience*9/10 {
		t.Errorf("what fails at once took %v", d)
	}
	if m := next[*actor.DeadLetterResponse](t, in); !m.Target.Equal(nobody) {
		t.Errorf("%v", m)
	}
	e := await(t, a, func(e *actor.DeadLetterEvent) bool { return e.Sender == nil && e.PID.Equal(nobody) })
	if m, ok := e.Message.(*wrapperspb.StringValue); !ok || m.Value != "of nobody" {
		t.Errorf("%+v", e)
	}
	if d := time.Since(began); d < patience*9/10 {
		t.Errorf("messages have waited for only %v", d)
	}
	eventually(t, "something is left of a node that is not there", func() bool { return len(a.Peers()) == 0 })
}

// Shutdown in the middle: waiting requests are answered.
func TestShutdownInTheMiddle(t *testing.T) {
	a, b := open(t, remoting.Config{}, 1), start(t, remoting.Config{Expose: everything})
	gone := actor.NewPID(freeName(t), "x")
	b.spawn("mute", func(actor.Context) {})
	b.spawn("echo", echo)
	terminated := make(inbox, 8)
	a.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(b.pid("mute"))
		case *actor.Terminated:
			terminated <- m
		}
	})
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	f := a.sys.Root.RequestFuture(b.pid("mute"), text("?"), soon)
	a.sys.Root.Send(gone, text("x"))
	ctx, cancel := timeout(soon)
	defer cancel()
	began := time.Now()
	if err := a.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	within(t, "Shutdown", began, 5*time.Second)
	var unknown *remoting.Unknown
	if res, err := remoting.Result(f); !errors.As(err, &unknown) || !errors.Is(err, remoting.ErrShutdown) {
		t.Errorf("%v, %v", res, err)
	}
	if m := next[*actor.Terminated](t, terminated); m.Why != actor.TerminatedReason_AddressTerminated {
		t.Errorf("%v", m)
	}
	await(t, a, func(e *actor.DeadLetterEvent) bool { return e.PID.Equal(gone) })
	d := await(t, b, anyEvent[*remoting.Disconnected])
	if !errors.Is(d.Err, remoting.ErrPeerShutdown) {
		t.Errorf("%v", d)
	}
	eventually(t, "b's actor still has a watcher", func() bool { return b.info(a).Watched == 0 })
	if res, err := a.ask(b.pid("echo"), text("x")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("after Shutdown: %v, %v", res, err)
	}
	if err := a.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	a.close()
}

// Messages accepted before Shutdown are sent.
func TestShutdownSends(t *testing.T) {
	a, b := open(t, remoting.Config{Overflow: remoting.Block}, 1), start(t, remoting.Config{Expose: everything})
	const n = 20_000
	done := make(chan string, 1)
	b.spawn("sink", inOrder(t, n, done))
	for i := range n {
		a.sys.Root.Send(b.pid("sink"), numbered(1, i+1, 200))
	}
	a.end()
	select {
	case <-done:
	case <-time.After(soon):
		t.Fatalf("%+v", b.Peers())
	}
}

// The runtime is shut down before the node: waiting requests are still answered.
func TestRuntimeGoesFirst(t *testing.T) {
	a, b := open(t, remoting.Config{}, 2), start(t, remoting.Config{Expose: everything})
	b.spawn("mute", func(actor.Context) {})
	b.spawn("echo", echo)
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	f := a.sys.Root.RequestFuture(b.pid("mute"), text("?"), soon)
	gone := a.sys.Root.RequestFuture(actor.NewPID(freeName(t), "x"), text("?"), soon)
	began := time.Now()
	a.close()
	var unknown *remoting.Unknown
	if res, err := remoting.Result(f); !errors.As(err, &unknown) || !errors.Is(err, rdma.ErrShutdown) {
		t.Errorf("%v, %v", res, err)
	}
	if res, err := remoting.Result(gone); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", res, err)
	}
	if res, err := a.ask(b.pid("echo"), text("x")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("afterwards: %v, %v", res, err)
	}
	within(t, "all of it", began, 5*time.Second)
	ctx, cancel := timeout(soon)
	defer cancel()
	if err := a.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
