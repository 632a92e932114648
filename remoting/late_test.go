package remoting_test

import (
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// A connection on which no hello comes in time, perhaps because the device has lost it, is made
// again. A request waits for that: it has certainly not been carried out.
func TestLateHello(t *testing.T) {
	var asked atomic.Int32
	answer, answered := make(chan struct{}), make(chan struct{})
	defer func() {
		close(answer)
		<-answered
	}()
	b := start(t, remoting.Config{Expose: everything, Admit: func(remoting.Peer) error {
		if asked.Add(1) == 1 {
			defer close(answered)
			<-answer // longer than a connection may take
		}
		return nil
	}})
	b.spawn("echo", echo)
	a := start(t, remoting.Config{Expose: everything})
	_, in := a.probe("a")
	// so that b does not give the link up between the two
	b.sys.Root.Send(a.pid("a"), text("waits, too"))
	got, err := a.ask(b.pid("echo"), text("x"))
	if err != nil || got.(*wrapperspb.StringValue).Value != "x" {
		t.Errorf("%v, %v", got, err)
	}
	next[*wrapperspb.StringValue](t, in)
	if n := asked.Load(); n < 2 {
		t.Errorf("Admit was called %d times", n)
	}
}
