package remoting_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// System messages that wait when a connection ends are not sent on the next one: the watches that
// they are about have ended with it, and their watchers have been notified. A Stop is sent: no
// actor was notified of its loss.
func TestSystemMessagesOfAnEndedConnection(t *testing.T) {
	const name, watches = "127.0.0.1:1", 5000
	n := start(t, remoting.Config{Expose: everything, Patience: soon})
	terminated := make(inbox, watches)
	watcher := n.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *wrapperspb.Int32Value:
			for i := range m.Value {
				ctx.Watch(actor.NewPID(name, fmt.Sprint("watched-", i)))
			}
		case *wrapperspb.StringValue:
			ctx.Respond(m)
		case *actor.Terminated:
			terminated <- m
		}
	})
	first := meetWith(t, start(t, remoting.Config{}), n, name, rdma.IDConfig{Credits: 1, MaxMessage: 4 << 20}).introduce()
	first.retains.Store(true) // one message, and the others have to wait
	n.sys.Root.Send(watcher, wrapperspb.Int32(1))
	first.hears(frame.KindWatch)
	n.sys.Root.Send(watcher, wrapperspb.Int32(watches))
	if _, err := n.ask(watcher, text("has it watched all?")); err != nil {
		t.Fatal(err)
	}
	n.sys.Root.Stop(actor.NewPID(name, "stopped"))
	first.away()
	first.release()
	eventually(t, "not all watchers are notified", func() bool { return len(terminated) == watches })

	again := meetFrom(t, start(t, remoting.Config{}), n, name).introduce()
	n.sys.Root.Send(actor.NewPID(name, "last"), text("comes behind all that has waited"))
	stops := 0
	for last, over := false, time.After(soon); !last; {
		var list []frame.Record
		select {
		case list = <-again.in:
		case <-over:
			t.Fatal("the last message does not come")
		}
		for _, r := range list {
			switch r.Kind {
			case frame.KindStop:
				stops++
			case frame.KindWatch, frame.KindUnwatch:
				t.Fatalf("%v of %s is sent on another connection", r.Kind, r.Target)
			}
			last = last || r.Target == "last"
		}
	}
	if stops != 1 {
		t.Errorf("%d Stops came, want the one that had waited", stops)
	}
}

// systemMessages is a process that keeps its system messages.
type systemMessages chan any

func (systemMessages) SendUserMessage(*actor.PID, any)         {}
func (c systemMessages) SendSystemMessage(_ *actor.PID, m any) { c <- m }
func (systemMessages) Stop(*actor.PID)                         {}

// An actor forgets a watcher of the peer's that no longer watches it, or whose connection is lost:
// it would keep all of them for as long as it lives.
func TestWatchersAreForgotten(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything})
	in := make(systemMessages, 8)
	n.sys.ProcessRegistry.Add(in, "watched")
	s := meet(t, n, "watches:1").introduce()
	record := func(kind frame.Kind, watcher string) frame.Record {
		return frame.Record{Kind: kind, Target: "watched", Sender: frame.PID{ID: watcher}}
	}
	s.say(record(frame.KindWatch, "one"), record(frame.KindWatch, "two"), record(frame.KindUnwatch, "one"))
	got := func() string {
		select {
		case m := <-in:
			switch m := m.(type) {
			case *actor.Watch:
				return "watch " + m.Watcher.Id
			case *actor.Unwatch:
				return "unwatch " + m.Watcher.Id
			}
			return fmt.Sprintf("%T", m)
		case <-time.After(soon):
			return "nothing"
		}
	}
	for i, want := range []string{"watch one", "watch two", "unwatch one", "unwatch two"} {
		if i == 3 {
			s.away()
		}
		if m := got(); m != want {
			t.Fatalf("got %s, want %s", m, want)
		}
	}
}
