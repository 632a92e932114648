package remoting_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rdmanet"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

// denied asserts that a request is refused by the other node.
func denied(t *testing.T, a *node, to *actor.PID) {
	t.Helper()
	res, err := a.ask(to, text("?"))
	var refused *remoting.Refused
	if !errors.As(err, &refused) || !errors.Is(err, remoting.ErrDenied) || refused.By != to.Address || refused.Target.Id != to.Id {
		t.Errorf("%s: %v, %v", to.Id, res, err)
	}
}

func allowed(t *testing.T, a *node, to *actor.PID) {
	t.Helper()
	if res, err := a.ask(to, text("?")); err != nil {
		t.Errorf("%s: %v, %v", to.Id, res, err)
	}
}

// Peers reach exposed actors, by the name or its beginning, and no others.
func TestExposeReach(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"greeter", "room/*"}}})
	for _, name := range []string{"greeter", "greeter2", "room/1", "rooms", "private"} {
		b.spawn(name, echo)
	}
	allowed(t, a, b.pid("greeter"))
	allowed(t, a, b.pid("room/1"))
	for _, name := range []string{"greeter2", "rooms", "private", "room", "not there"} {
		denied(t, a, b.pid(name))
	}
	b.Expose(remoting.Expose{Reach: []string{"private"}})
	allowed(t, a, b.pid("private"))
	b.Conceal(remoting.Expose{Reach: []string{"private", "room/*"}})
	denied(t, a, b.pid("private"))
	denied(t, a, b.pid("room/1"))
	allowed(t, a, b.pid("greeter"))
	for name, want := range map[string]bool{"greeter": true, "room/1": false, "guardian$1": false} {
		if b.Exposes(remoting.Reach, name) != want || b.Exposes(remoting.Watch, name) {
			t.Errorf("%s: it is not %v that every peer may reach it and none watch it", name, want)
		}
	}
	if c := b.info(a).Counts; c.Refused != 7 {
		t.Errorf("%+v", c)
	}
	await(t, b, func(r *remoting.Refused) bool { return r.Target.Id == "rooms" && errors.Is(r, remoting.ErrDenied) })
}

// Stop and Watch have separate rules. An actor that may not be watched appears to be missing.
func TestExposeStopAndWatch(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: remoting.Expose{
		Reach: []string{"*"}, Watch: []string{"watched"}, Stop: []string{"mortal"},
	}})
	for _, name := range []string{"watched", "mortal", "other"} {
		b.spawn(name, echo)
	}
	root := a.sys.Root
	for _, name := range []string{"other", "mortal"} {
		res, err := root.StopFuture(b.pid(name)).Result() // it watches first
		if m, ok := res.(*actor.Terminated); err != nil || !ok || m.Why != actor.TerminatedReason_NotFound {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	root.Stop(b.pid("watched"))
	root.Poison(b.pid("watched"))
	root.Poison(b.pid("other"))
	await(t, b, func(r *remoting.Refused) bool { return r.Target.Id == "other" })
	allowed(t, a, b.pid("watched"))
	allowed(t, a, b.pid("other"))
	eventually(t, "mortal is still there", func() bool {
		_, there := b.sys.ProcessRegistry.GetLocal("mortal")
		return !there
	})
	in := make(inbox, 8)
	a.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(b.pid("watched"))
			ctx.Request(b.pid("watched"), text("?"))
		case *actor.Terminated, *wrapperspb.StringValue:
			in <- m
		}
	})
	next[*wrapperspb.StringValue](t, in)
	b.sys.Root.Stop(b.pid("watched"))
	if m := next[*actor.Terminated](t, in); m.Why != actor.TerminatedReason_Stopped {
		t.Errorf("%v", m)
	}
}

// Even where everything is exposed no peer reaches the internal processes of this module and
// Proto.Actor, unless they are named in full; and futures and guardians not even then.
func TestInternalsAreNotExposed(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("echo", echo)
	allowed(t, a, b.pid("echo"))
	id := b.rt.CreateID(nil)
	supervised, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(echo, actor.WithGuardian(actor.DefaultSupervisorStrategy())), "supervised")
	if err != nil {
		t.Fatal(err)
	}
	allowed(t, a, b.pid(supervised.Id))
	server := rpc.NewServer(b.rt)
	defer server.Close()
	at, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rpc.Dial(t.Context(), b.rt, at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	listener, err := rdmanet.Listen(t.Context(), b.rt, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	future := actor.NewFuture(b.sys, soon)
	var internals []string
	for _, bucket := range b.sys.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, name := range bucket.Keys() {
			if name != "echo" && name != "supervised" {
				internals = append(internals, name)
			}
		}
	}
	for _, prefix := range []string{"rdma$", "remoting$", "rpc$", "rdmanet$", "future$", "guardian$", "eventstream", "deadletter"} {
		if !slices.ContainsFunc(internals, func(name string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Errorf("nothing is called %s: %v", prefix, internals)
		}
	}
	for _, name := range append(internals, id.Id) {
		before := b.info(a).Counts.Refused
		a.sys.Root.Send(b.pid(name), text("?"))
		a.sys.Root.Poison(b.pid(name))
		a.sys.Root.Stop(b.pid(name))
		allowed(t, a, b.pid("echo"))
		if got := b.info(a).Counts.Refused - before; got != 3 && (got != 1 || !strings.HasPrefix(name, "future$")) {
			t.Errorf("%s: %d of 3 were refused", name, got)
		}
		res, err := a.sys.Root.StopFuture(b.pid(name)).Result()
		if m, ok := res.(*actor.Terminated); err != nil || !ok || m.Why != actor.TerminatedReason_NotFound {
			t.Errorf("%s was watched: %v, %v", name, res, err)
		}
		allowed(t, a, b.pid("echo")) // its Stop was refused before
	}
	b.Expose(remoting.Expose{Reach: internals, Stop: internals, Watch: internals})
	published := make(chan any, 100)
	b.sys.EventStream.Subscribe(func(ev any) {
		if m, ok := ev.(*wrapperspb.StringValue); ok {
			published <- m
		}
	})
	a.sys.Root.Send(b.pid("eventstream"), text("named in full"))
	select {
	case <-published:
	case <-time.After(soon):
		t.Error("the event stream was named in full, and is not reached")
	}
	for _, name := range internals {
		if strings.HasPrefix(name, "future$") || strings.HasPrefix(name, "guardian$") {
			a.sys.Root.Send(b.pid(name), text("?"))
			a.sys.Root.Stop(b.pid(name))
		}
	}
	allowed(t, a, b.pid("echo"))
	select {
	case <-done(future):
		t.Error("a future was ended by another node than it waits for")
	default:
	}
	b.sys.Root.Send(future.PID(), text("the end"))
	b.sys.Root.Send(id, &rdma.DestroyID{})
}

// done returns a channel that is closed when a future has a result.
func done(f actor.Future) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		_ = f.Wait()
		close(c)
	}()
	time.Sleep(20 * time.Millisecond)
	return c
}

// An actor that has sent a peer something can be answered by that peer, by no other one, and only
// with messages.
func TestAnswersAreAllowed(t *testing.T) {
	a := start(t, remoting.Config{})
	b, c := start(t, remoting.Config{Expose: everything}), start(t, remoting.Config{Expose: everything})
	sender, in := a.probe("sender")
	b.spawn("echo", echo)
	a.sys.Root.RequestWithCustomSender(b.pid("echo"), text("1"), sender)
	next[*wrapperspb.StringValue](t, in)
	b.sys.Root.Send(a.pid("sender"), text("2")) // later, too
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "2" {
		t.Errorf("%v", m)
	}
	denied(t, c, a.pid("sender"))
	b.sys.Root.Stop(a.pid("sender"))
	b.sys.Root.Poison(a.pid("sender"))
	await(t, a, func(r *remoting.Refused) bool { return r.Target.Id == "sender" && errors.Is(r, remoting.ErrDenied) })
	b.sys.Root.Send(a.pid("sender"), text("3"))
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "3" {
		t.Errorf("%v", m)
	}
	// another actor of that name has sent nothing
	_ = a.sys.Root.StopFuture(sender).Wait()
	_, in = a.probe("sender")
	denied(t, b, a.pid("sender"))
	silent(t, in, 10*time.Millisecond)
}

// Only the recipient of a future's request can answer it, and later answers are ignored.
func TestFuturesAreAnsweredOnce(t *testing.T) {
	a := start(t, remoting.Config{})
	b, c := start(t, remoting.Config{Expose: everything}), start(t, remoting.Config{Expose: everything})
	asked := make(chan *actor.PID, 1)
	b.spawn("b", func(ctx actor.Context) {
		if ctx.Sender() != nil {
			asked <- ctx.Sender()
		}
	})
	f := a.sys.Root.RequestFuture(b.pid("b"), text("?"), soon)
	future := <-asked // a PID keeps the process of the system that has used it first
	answer := func(n *node, token uint32, what string) {
		n.sys.Root.Send(&actor.PID{Address: a.Name(), Id: future.Id, RequestId: token}, text(what))
	}
	answer(c, 0, "forged")
	answer(c, future.RequestId+1, "forged")
	answer(b, 0, "forged")
	eventually(t, "they were not counted", func() bool { return a.info(c).Counts.Late+a.info(b).Counts.Late == 3 })
	answer(b, future.RequestId, "right")
	answer(b, future.RequestId, "again")
	if res, err := remoting.Result(f); err != nil || res.(*wrapperspb.StringValue).Value != "right" {
		t.Errorf("%v, %v", res, err)
	}
	eventually(t, "it was not counted", func() bool { return a.info(b).Counts.Late == 2 })
}

// Admit decides which peers may connect. A refused peer receives the reason, and no messages wait
// for it. Admit is the user's code: it may panic, exit, and block.
func TestAdmit(t *testing.T) {
	var how atomic.Value
	how.Store("refuse")
	block := make(chan struct{})
	a := start(t, remoting.Config{Admit: func(p remoting.Peer) error {
		switch how.Load() {
		case "refuse":
			return errors.New(p.Member + " is on the block list")
		case "panic":
			panic("Admit")
		case "exit":
			runtime.Goexit()
		case "block":
			<-block
		}
		return nil
	}, Expose: everything, Patience: time.Second})
	a.spawn("echo", echo)
	for _, what := range []string{"refuse", "panic", "exit"} {
		how.Store(what)
		b := open(t, remoting.Config{Member: "b", Expose: everything, Patience: time.Second}, 1)
		b.spawn("echo", echo)
		began := time.Now()
		for _, try := range []struct {
			n  *node
			to *actor.PID
		}{{b, a.pid("echo")}, {a, b.pid("echo")}} {
			if res, err := try.n.ask(try.to, text("?")); !errors.Is(err, actor.ErrDeadLetter) {
				t.Errorf("%s: %v, %v", what, res, err)
			}
		}
		within(t, what, began, 5*time.Second)
		how.Store("admit")
		eventually(t, "it is never admitted", func() bool {
			_, err := b.ask(a.pid("echo"), text("?"))
			return err == nil
		})
		b.end()
	}
	how.Store("block")
	b := start(t, remoting.Config{Expose: everything, Patience: time.Second})
	c := start(t, remoting.Config{Expose: everything})
	if res, err := b.ask(a.pid("echo"), text("?")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("block: %v, %v", res, err)
	}
	how.Store("admit")
	allowed(t, c, a.pid("echo")) // no other request waits for it
	close(block)
	eventually(t, "it is never admitted", func() bool {
		_, err := b.ask(a.pid("echo"), text("?"))
		return err == nil
	})
}

// Allow is asked once for each name and each access, besides Expose. It may panic, which refuses.
func TestAllow(t *testing.T) {
	var asked atomic.Int32
	a := start(t, remoting.Config{})
	b := start(t, remoting.Config{Expose: everything, Allow: func(p remoting.Peer, access remoting.Access, name string) error {
		asked.Add(1)
		switch {
		case p.Name != a.Name():
			t.Errorf("%+v", p)
		case name == "panics":
			panic("Allow")
		case name == "secret" || access == remoting.Stop:
			return errors.New("no")
		}
		return nil
	}})
	for _, name := range []string{"open", "secret", "panics"} {
		b.spawn(name, echo)
	}
	if b.Exposes(remoting.Reach, "open") {
		t.Error("every peer may reach it, and Allow was not asked about it")
	}
	for range 3 {
		allowed(t, a, b.pid("open"))
		denied(t, a, b.pid("secret"))
		denied(t, a, b.pid("panics"))
	}
	a.sys.Root.Stop(b.pid("open"))
	allowed(t, a, b.pid("open"))
	if n := asked.Load(); n != 4 {
		t.Errorf("Allow was called %d times", n)
	}
	b.Expose(remoting.Expose{})
	allowed(t, a, b.pid("open"))
	if n := asked.Load(); n != 5 {
		t.Errorf("Allow was called %d times", n)
	}
}

// A kind is spawned for a peer, which may then reach, watch and stop the actor. Props are the
// user's code.
func TestSpawn(t *testing.T) {
	block := make(chan struct{})
	a := start(t, remoting.Config{})
	b := start(t, remoting.Config{
		Expose: remoting.Expose{Spawn: []string{"echo", "panics", "exits", "blocks", "unknown"}},
		Kinds: map[string]*actor.Props{
			"echo":    actor.PropsFromFunc(echo),
			"private": actor.PropsFromFunc(echo),
			"panics":  actor.PropsFromProducer(func() actor.Actor { panic("no actor") }),
			"exits":   actor.PropsFromProducer(func() actor.Actor { runtime.Goexit(); return nil }),
			"blocks":  actor.PropsFromProducer(func() actor.Actor { <-block; return actor.ReceiveFunc(echo) }),
		},
	})
	ctx, cancel := timeout(soon)
	defer cancel()
	pid, err := a.Spawn(ctx, b.Name(), "echo", "mine")
	if err != nil || pid.Id != "Remote$mine" || pid.Address != b.Name() {
		t.Fatal(pid, err)
	}
	allowed(t, a, pid)
	if pid, err := a.Spawn(ctx, b.Name(), "echo", ""); err != nil {
		t.Error(err)
	} else {
		allowed(t, a, pid)
	}
	for kind, want := range map[string]error{"private": remoting.ErrDenied, "unknown": remoting.ErrSpawn, "panics": remoting.ErrSpawn, "exits": remoting.ErrSpawn} {
		if pid, err := a.Spawn(ctx, b.Name(), kind, ""); !errors.Is(err, want) || !errors.Is(err, remoting.ErrSpawn) {
			t.Errorf("%s: %v, %v", kind, pid, err)
		} else {
			t.Log(err)
		}
	}
	if pid, err := a.Spawn(ctx, b.Name(), "echo", "mine"); !errors.Is(err, actor.ErrNameExists) {
		t.Error(pid, err)
	}
	short, cancel := timeout(50 * time.Millisecond)
	if pid, err := a.Spawn(short, b.Name(), "blocks", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(pid, err)
	}
	cancel()
	c := start(t, remoting.Config{})
	denied(t, c, b.pid(pid.Id)) // it was not spawned for c
	res, err := a.sys.Root.StopFuture(pid).Result()
	if m, ok := res.(*actor.Terminated); err != nil || !ok || m.Why != actor.TerminatedReason_Stopped {
		t.Errorf("%v, %v", res, err)
	}
	close(block)
	if pid, err := a.Spawn(ctx, freeName(t), "echo", ""); err == nil {
		t.Error(pid)
	}
}

// A peer cannot spawn actors with the names of another actor's children, nor with names that
// another peer could not use.
func TestSpawnedNames(t *testing.T) {
	a := start(t, remoting.Config{})
	b := start(t, remoting.Config{
		Expose: remoting.Expose{Spawn: []string{"*"}},
		Kinds:  map[string]*actor.Props{"parent": actor.PropsFromFunc(echo)},
	})
	for _, name := range []string{"a/$1", "a/b", "$1", "/"} {
		if pid, err := a.Spawn(context.Background(), b.Name(), "parent", name); !errors.Is(err, remoting.ErrSpawn) || !strings.Contains(err.Error(), "slash") {
			t.Errorf("%s: %v, %v", name, pid, err)
		}
	}
}
