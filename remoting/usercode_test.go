package remoting_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/remoting"
)

// trap is a message whose code panics at the place Where.
type trap struct{ Where string }

func (m *trap) spring(where string) {
	if m.Where == where {
		panic("as the test wants")
	}
}

// GetMessages makes it a batch.
func (m *trap) GetMessages() []any {
	m.spring("the batch")
	return nil
}

func traps() codec.Codec {
	return codec.New(codec.Own("test.Trap", func(dst []byte, m *trap) ([]byte, error) {
		return append(dst, m.Where...), nil
	}, func(b []byte) (*trap, error) {
		m := &trap{string(b)}
		m.spring("the codec")
		return m, nil
	}))
}

// Code of the application that runs on a link's loop and panics costs the message. The next one
// works, and others do not notice.
func TestUserCodeOnTheLoop(t *testing.T) {
	b := start(t, remoting.Config{Expose: everything, Codec: traps(), Allow: func(_ remoting.Peer, _ remoting.Access, name string) error {
		if name == "panics" {
			panic("as the test wants")
		}
		return nil
	}})
	b.spawn("echo", echo)
	other := start(t, remoting.Config{})
	allowed(t, other, b.pid("echo"))
	for what, ask := range map[string]func(a *node) (any, error){
		"the codec": func(a *node) (any, error) { return a.ask(b.pid("echo"), &trap{"the codec"}) },
		"the batch": func(a *node) (any, error) { return a.ask(b.pid("echo"), &trap{"the batch"}) },
		"Allow":     func(a *node) (any, error) { return a.ask(b.pid("panics"), text("x")) },
	} {
		t.Run(what, func(t *testing.T) {
			a := start(t, remoting.Config{Codec: traps()})
			allowed(t, a, b.pid("echo"))
			_, err := ask(a)
			var refused *remoting.Refused
			if !errors.As(err, &refused) {
				t.Errorf("%v", err)
			}
			allowed(t, a, b.pid("echo"))
			if all := disconnections(a); len(all) != 0 {
				t.Errorf("the connection has ended: %v", all)
			}
		})
	}
	allowed(t, other, b.pid("echo"))
	if d := b.info(other); !d.Connected || d.Counts.Received != 2 {
		t.Errorf("%+v", d)
	}
}

// bad is a process to which every send fails.
type bad struct{}

func (bad) SendUserMessage(*actor.PID, any)   { panic("as the test wants") }
func (bad) SendSystemMessage(*actor.PID, any) { panic("as the test wants") }
func (bad) Stop(*actor.PID)                   {}

// A future whose result goes to a process that panics, and a watcher that is one, cost the others
// nothing: neither the connection, nor when that ends their answers.
func TestUserCodeBehindFutures(t *testing.T) {
	a, b := start(t, remoting.Config{}), open(t, remoting.Config{Expose: everything}, 1)
	b.spawn("echo", echo)
	b.spawn("silent", func(actor.Context) {})
	if _, ok := a.sys.ProcessRegistry.Add(bad{}, "bad"); !ok {
		t.Fatal("bad is there")
	}
	answer := b.held("held")
	pipe := func(to string) {
		a.sys.Root.RequestFuture(b.pid(to), text("x"), time.Minute).PipeTo(a.pid("bad"))
	}
	watch := func() {
		p, _ := a.sys.ProcessRegistry.Get(b.pid("silent"))
		p.SendSystemMessage(b.pid("silent"), &actor.Watch{Watcher: a.pid("bad")})
	}
	allowed(t, a, b.pid("echo"))
	pipe("held")
	answer() // not before: the result would go from here, and this would panic
	watch()
	allowed(t, a, b.pid("echo"))
	pipe("silent")
	var asked []actor.Future
	for range 5 {
		asked = append(asked, a.sys.Root.RequestFuture(b.pid("silent"), wrapperspb.String("x"), time.Minute))
	}
	_, in := a.probe("watcher")
	p, _ := a.sys.ProcessRegistry.Get(b.pid("silent"))
	p.SendSystemMessage(b.pid("silent"), &actor.Watch{Watcher: a.pid("watcher")})
	allowed(t, a, b.pid("echo"))
	if c := b.info(a); c.Watched != 2 || len(b.Peers()) != 1 {
		t.Errorf("%+v", b.Peers())
	}
	b.end()
	for i, f := range asked {
		var unknown *remoting.Unknown
		if _, err := remoting.Result(f); !errors.As(err, &unknown) {
			t.Errorf("future %d: %v", i, err)
		}
	}
	next[*actor.Terminated](t, in)
	a.events.mu.Lock()
	defer a.events.mu.Unlock()
	ended := 0
	for _, ev := range a.events.list {
		if _, ok := ev.(*remoting.Disconnected); ok {
			ended++
		}
	}
	if ended > 1 {
		t.Errorf("the connection has ended %d times", ended)
	}
}
