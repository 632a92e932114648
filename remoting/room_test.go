package remoting_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// A message that never finds room in the queue is refused, and blocks nobody.
func TestBlockLargerThanQueue(t *testing.T) {
	a := start(t, remoting.Config{Queue: 1 << 20, MaxMessage: 1 << 20, Overflow: remoting.Block})
	b := start(t, remoting.Config{MaxMessage: 16 << 20, Expose: everything})
	b.spawn("echo", echo)
	allowed(t, a, b.pid("echo"))
	sent := make(chan error, 1)
	go func() {
		_, err := a.ask(b.pid("echo"), wrapperspb.Bytes(make([]byte, 2<<20)))
		sent <- err
	}()
	select {
	case err := <-sent:
		if !errors.Is(err, actor.ErrDeadLetter) {
			t.Error(err)
		}
	case <-time.After(soon):
		t.Fatal("it waits")
	}
}

// Whoever waits for room goes on when what waits was dropped, because the peer does not take it.
func TestBlockedGoOnWhenTooLarge(t *testing.T) {
	a := start(t, remoting.Config{Queue: 1 << 20, MaxMessage: 1 << 20, Overflow: remoting.Block})
	hold := make(chan struct{})
	b := start(t, remoting.Config{MaxMessage: 64 << 10, Expose: everything, Admit: func(remoting.Peer) error { <-hold; return nil }})
	b.spawn("echo", echo)
	a.sys.Root.Send(b.pid("echo"), wrapperspb.Bytes(make([]byte, 1<<20-1000)))
	sent := make(chan bool)
	go func() {
		a.sys.Root.Send(b.pid("echo"), wrapperspb.Bytes(make([]byte, 1000)))
		close(sent)
	}()
	time.Sleep(100 * time.Millisecond)
	close(hold)
	select {
	case <-sent:
	case <-time.After(soon):
		t.Fatal("it waits")
	}
}
