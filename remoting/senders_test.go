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

// A peer cannot have its message answered to an actor, or a future, of the node that gets it, if it
// may not reach that itself.
func TestSenderOfTheReceiver(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"echo"}}})
	b.spawn("echo", echo)
	_, in := b.probe("secret")
	future := actor.NewFuture(b.sys, soon)
	for _, name := range []string{"secret", future.PID().Id} {
		for _, addr := range []string{b.Name(), "nonhost"} {
			a.sys.Root.RequestWithCustomSender(b.pid("echo"), text("smuggled"), actor.NewPID(addr, name))
		}
	}
	allowed(t, a, b.pid("echo"))
	silent(t, in, 50*time.Millisecond)
	select {
	case <-done(future):
		t.Error("a future was answered")
	default:
	}
	b.sys.Root.Send(future.PID(), text("the end"))
}

// A node cannot have a name by which this one's own actors are meant.
func TestNodeWithLocalName(t *testing.T) {
	b := start(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"echo"}}})
	a := start(t, remoting.Config{Name: "nonhost", Listen: "127.0.0.1:0"})
	b.spawn("echo", echo)
	_, in := b.probe("secret")
	sender, _ := a.probe("secret")
	res, err := a.ask(b.pid("echo"), text("?"))
	if !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", res, err)
	}
	a.sys.Root.RequestWithCustomSender(b.pid("echo"), text("smuggled"), sender)
	silent(t, in, 50*time.Millisecond)
}

// several is a message that an actor gets as many messages.
type several []any

func (s several) GetMessages() []any { return s }

// The messages inside a batch are judged, too, and so are those that a codec returns in an
// envelope.
func TestMessagesInMessages(t *testing.T) {
	hidden := map[string]any{
		"pill": &actor.PoisonPill{}, "system": &actor.Stop{}, "nested": several{text("1"), several{&actor.PoisonPill{}}},
		"envelope": &actor.MessageEnvelope{Message: &actor.PoisonPill{}},
	}
	messages := codec.New(codec.Own("several",
		func(dst []byte, m several) ([]byte, error) { return append(dst, m[0].(string)...), nil },
		func(body []byte) (several, error) {
			if m := hidden[string(body)]; m != nil {
				return several{text("before"), m}, nil
			}
			return several{text("a"), text("b")}, nil
		}))
	a := start(t, remoting.Config{Codec: messages})
	b := start(t, remoting.Config{Codec: messages, Expose: remoting.Expose{Reach: []string{"*"}}})
	_, in := b.probe("probe")
	for name := range hidden {
		a.sys.Root.Send(b.pid("probe"), several{name})
	}
	a.sys.Root.Send(b.pid("probe"), several{"fine"})
	for _, want := range []string{"a", "b"} {
		if m := next[*wrapperspb.StringValue](t, in); m.Value != want {
			t.Errorf("%v", m)
		}
	}
	if c := b.info(a).Counts; c.Refused != uint64(len(hidden)) {
		t.Errorf("%+v", c)
	}
}

// Allow is asked again when another process has the name of a peer.
func TestAllowAnotherProcess(t *testing.T) {
	b := start(t, remoting.Config{Expose: everything, Allow: func(p remoting.Peer, _ remoting.Access, _ string) error {
		if p.Member != "good" {
			return errors.New(p.Member)
		}
		return nil
	}})
	b.spawn("echo", echo)
	name := freeName(t)
	a := open(t, remoting.Config{Name: name, Member: "good"}, 1)
	allowed(t, a, b.pid("echo"))
	a.end()
	a = start(t, remoting.Config{Name: name, Member: "bad"})
	denied(t, a, b.pid("echo"))
}
