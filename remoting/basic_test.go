package remoting_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// A future gets the answer of an actor on another node, whatever mailbox that one has.
func TestRequestFuture(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	for kind, options := range b.kinds() {
		b.spawn("echo-"+kind, echo, options...)
		for i := range 3 {
			want := fmt.Sprint("hello ", i)
			got, err := a.ask(b.pid("echo-"+kind), text(want))
			if err != nil {
				t.Fatal(kind, err)
			}
			if m, ok := got.(*wrapperspb.StringValue); !ok || m.Value != want {
				t.Errorf("%s: %v, want %q", kind, got, want)
			}
		}
	}
	if i := a.Peers(); len(i) != 1 || i[0].Futures != 0 || i[0].Waiting != 0 || i[0].Counts.Sent != 9 || i[0].Counts.Received != 9 {
		t.Errorf("%+v", i)
	}
}

// An actor sees the sender and the header of a message, and can answer.
func TestSenderAndHeader(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	type seen struct {
		sender *actor.PID
		header map[string]string
	}
	got := make(chan seen, 1)
	b.spawn("b", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			got <- seen{ctx.Sender(), ctx.MessageHeader().ToMap()}
			ctx.Respond(text("yes"))
		}
	})
	sender, in := a.probe("a")
	a.sys.Root.Send(b.pid("b"), &actor.MessageEnvelope{
		Message: text("?"), Sender: sender, Header: map[string]string{"trace": "1", "user": "x"},
	})
	s := <-got
	if s.sender.Address != a.Name() || s.sender.Id != "a" || len(s.header) != 2 || s.header["trace"] != "1" || s.header["user"] != "x" {
		t.Errorf("%+v", s)
	}
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "yes" {
		t.Errorf("the answer is %v", m)
	}
}

// A watcher gets Terminated once, when the actor on the other node stops, and immediately if it is
// missing.
func TestWatch(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	for kind, options := range b.kinds() {
		target := b.spawn("target-"+kind, echo, options...)
		there := b.pid(target.Id)
		in := make(inbox, 8)
		watcher := a.spawn("watcher-"+kind, func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *wrapperspb.StringValue:
				if m.Value == "watch" {
					ctx.Watch(there)
				} else {
					ctx.Unwatch(there)
				}
				in <- m
			case *actor.Terminated:
				in <- m
			}
		})
		a.sys.Root.Send(watcher, text("watch"))
		next[*wrapperspb.StringValue](t, in)
		eventually(t, "b does not know the watch", func() bool { return b.info(a).Watched == 1 })
		if _, err := a.ask(there, text("x")); err != nil { // the actor knows it, too
			t.Fatal(err)
		}
		b.sys.Root.Stop(target)
		m := next[*actor.Terminated](t, in)
		if !m.Who.Equal(there) || m.Why != actor.TerminatedReason_Stopped {
			t.Errorf("%s: %v", kind, m)
		}
		a.sys.Root.Send(watcher, text("watch"))
		next[*wrapperspb.StringValue](t, in)
		if m := next[*actor.Terminated](t, in); !m.Who.Equal(there) || m.Why != actor.TerminatedReason_NotFound {
			t.Errorf("%s: %v", kind, m)
		}
		silent(t, in, 20*time.Millisecond)
		if w := a.info(b).Watching + b.info(a).Watched; w != 0 {
			t.Errorf("%s: %d watches are left", kind, w)
		}
	}
}

// A watcher that has unwatched gets no Terminated.
func TestUnwatch(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	target := b.spawn("target", echo)
	there := b.pid("target")
	in := make(inbox, 8)
	a.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(there)
			ctx.Unwatch(there)
			ctx.Request(there, text("done"))
		case *wrapperspb.StringValue, *actor.Terminated:
			in <- m
		}
	})
	next[*wrapperspb.StringValue](t, in)
	b.sys.Root.Stop(target)
	silent(t, in, 50*time.Millisecond)
}

// Stop, PoisonPill and their futures work on actors of another node.
func TestStopAndPoison(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	root := a.sys.Root
	for kind, options := range b.kinds() {
		for how, stop := range map[string]func(*actor.PID) actor.Future{"stop": root.StopFuture, "poison": root.PoisonFuture} {
			name := kind + "-" + how
			b.spawn(name, echo, options...)
			f := stop(b.pid(name))
			res, err := f.Result()
			if m, ok := res.(*actor.Terminated); err != nil || !ok || m.Who.Id != name {
				t.Errorf("%s: %v, %v", name, res, err)
			}
		}
	}
}

// A request to a missing actor fails immediately.
func TestNobody(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	began := time.Now()
	if res, err := a.ask(b.pid("nobody"), text("?")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", res, err)
	}
	if d := time.Since(began); d > soon/2 {
		t.Errorf("that took %v", d)
	}
	e := await(t, b, anyEvent[*actor.DeadLetterEvent])
	if e.PID.Id != "nobody" || e.Sender.Address != a.Name() {
		t.Errorf("%+v", e)
	}
}

// Both nodes send each other the first message at the same moment, again and again.
func TestBothBegin(t *testing.T) {
	for range 20 {
		a, b := open(t, remoting.Config{Expose: everything}, 1), open(t, remoting.Config{Expose: everything}, 1)
		a.spawn("echo", echo)
		b.spawn("echo", echo)
		fa := a.sys.Root.RequestFuture(b.pid("echo"), text("from a"), soon)
		fb := b.sys.Root.RequestFuture(a.pid("echo"), text("from b"), soon)
		for f, want := range map[actor.Future]string{fa: "from a", fb: "from b"} {
			if got, err := remoting.Result(f); err != nil || got.(*wrapperspb.StringValue).Value != want {
				t.Fatalf("%v, %v", got, err)
			}
		}
		a.end()
		b.end()
	}
}
