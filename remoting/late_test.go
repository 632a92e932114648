package remoting_test

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A connection on which no hello comes in time, perhaps because the device has lost it, is made
// again. A request waits for that: it has certainly not been carried out.
func TestLateHello(t *testing.T) {
	t.Parallel()
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

// A frame that arrives before Admit has answered breaks the protocol, except a goodbye: that ends
// the connection, and is not answered.
func TestFrameBeforeAdmit(t *testing.T) {
	asked, answer := make(chan struct{}, 8), make(chan struct{})
	defer close(answer)
	n := start(t, remoting.Config{Admit: func(remoting.Peer) error {
		asked <- struct{}{}
		<-answer
		return nil
	}})
	early := func(name string, r frame.Record) *stranger {
		s := meet(t, n, name).connect()
		s.hello()
		<-asked
		s.say(r)
		return s
	}
	early("early:1", frame.Record{Kind: frame.KindUser, Target: "x", Type: "x.T"}).ends(frame.GoodbyeBadFrame)
	s := early("leaver:1", frame.Record{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "bye"})
	select {
	case <-s.down:
	case <-time.After(soon):
		t.Error("the connection does not end")
	}
	for len(s.in) > 0 {
		if list := <-s.in; len(list) > 0 {
			t.Errorf("got %v", list)
		}
	}
}
