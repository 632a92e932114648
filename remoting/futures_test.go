package remoting_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// An answer that comes too late changes nothing.
func TestLateAnswerChangesNothing(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("slow", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			if m.Value == "slow" {
				time.Sleep(100 * time.Millisecond)
			}
			ctx.Respond(m)
		}
	})
	f := a.sys.Root.RequestFuture(b.pid("slow"), text("slow"), 20*time.Millisecond)
	if _, err := f.Result(); !errors.Is(err, actor.ErrTimeout) {
		t.Fatal(err)
	}
	allowed(t, a, b.pid("slow"))
	if res, err := f.Result(); res != nil || !errors.Is(err, actor.ErrTimeout) {
		t.Errorf("%v, %v", res, err)
	}
	if c := a.info(b).Counts; c.Late != 1 {
		t.Errorf("%+v", c)
	}
}

// Futures that have timed out are not counted among those that wait, although their answers have
// not come.
func TestTimedOutFuturesDoNotWait(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("mute", func(actor.Context) {})
	waits := a.sys.Root.RequestFuture(b.pid("mute"), text("?"), soon)
	for range 10 {
		if _, err := a.sys.Root.RequestFuture(b.pid("mute"), text("?"), time.Millisecond).Result(); !errors.Is(err, actor.ErrTimeout) {
			t.Fatal(err)
		}
	}
	eventually(t, "they are counted", func() bool { return a.info(b).Futures == 1 })
	a.sys.Root.Stop(waits.PID())
	b.spawn("echo", echo)
	allowed(t, a, b.pid("echo")) // after all others: b shuts down first, and has received them then
}

// A node that was not asked cannot answer: it can name no future. One to which a request was
// forwarded, and that tries tokens, loses its connection, also if it names the future as the sender
// of messages to an actor that would answer them.
func TestGuessedAnswers(t *testing.T) {
	for name, forged := range map[string]func(n *node, future string, token uint32) frame.Record{
		"answers": func(_ *node, future string, token uint32) frame.Record {
			return frame.Record{Target: future, TargetRequest: token}
		},
		"senders": func(n *node, future string, token uint32) frame.Record {
			return frame.Record{Target: "echo", Sender: frame.PID{Address: n.Name(), ID: future, Request: token}}
		},
	} {
		t.Run(name, func(t *testing.T) { guessAnswers(t, forged) })
	}
}

func guessAnswers(t *testing.T, forged func(n *node, future string, token uint32) frame.Record) {
	n := start(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"echo"}}})
	n.spawn("echo", echo)
	asked, other := meet(t, n, "oracle:1").introduce(), meet(t, n, "guesser:1").introduce()
	f := n.sys.Root.RequestFuture(actor.NewPID("oracle:1", "oracle"), text("?"), soon)
	r := asked.hears(frame.KindUser)
	body := func(s string) []byte {
		b, err := proto.Marshal(text(s))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	number, _ := tables.LinkOf(r.Sender.ID)
	if number < 1<<20 { // one in 2^44
		t.Errorf("the request is of %s, which can be guessed", r.Sender.ID)
	}
	for i := range uint32(1000) {
		g := forged(n, r.Sender.ID, r.Sender.Request^(i+1))
		g.Kind, g.Type, g.Body = frame.KindUser, "google.protobuf.StringValue", body("forged")
		other.say(g)
	}
	d := await(t, n, func(d *remoting.Disconnected) bool { return d.Peer.Name == "guesser:1" })
	if !errors.Is(d.Err, remoting.ErrProtocol) {
		t.Errorf("%v", d)
	}
	asked.say(frame.Record{Kind: frame.KindUser, Target: r.Sender.ID, TargetRequest: r.Sender.Request, Type: "google.protobuf.StringValue", Body: body("true")})
	if got, err := remoting.Result(f); err != nil || got.(*wrapperspb.StringValue).Value != "true" {
		t.Errorf("%v, %v", got, err)
	}
}

// A request may be forwarded to two nodes, and both answer. The slower one keeps its connection,
// although its answers are always some requests late, and those use the same slot again.
func TestSecondAnswersToForwardedRequests(t *testing.T) {
	const requests, behind = 200, 5
	n := start(t, remoting.Config{})
	asked, other := meet(t, n, "faster:1").introduce(), meet(t, n, "slower:1").introduce()
	var answers []frame.Record
	for range requests {
		f := n.sys.Root.RequestFuture(actor.NewPID("faster:1", "oracle"), text("?"), soon)
		r := asked.hears(frame.KindUser)
		answers = append(answers, frame.Record{
			Kind: frame.KindUser, Target: r.Sender.ID, TargetRequest: r.Sender.Request, Type: "google.protobuf.StringValue", Body: marshalled(t, text("yes")),
		})
		asked.say(answers[len(answers)-1])
		if _, err := remoting.Result(f); err != nil {
			t.Fatal(err)
		}
		if len(answers) > behind {
			other.say(answers[len(answers)-1-behind])
		}
	}
	late := func() uint64 { return infoOf(n, "slower:1").Counts.Late }
	eventually(t, "not all of the slower one's answers have come", func() bool { return late() == requests-behind })
}

// Answers to forwarded requests may be late, and many at a time: the peer that was asked has left.
// The node that answers keeps its connection, although its answers are ignored.
func TestLateAnswersToForwardedRequests(t *testing.T) {
	const requests = 200
	n := start(t, remoting.Config{})
	asked, other := meet(t, n, "oracle:1").introduce(), meet(t, n, "other:1").introduce()
	answer := func(r frame.Record) {
		other.say(frame.Record{Kind: frame.KindUser, Target: r.Sender.ID, TargetRequest: r.Sender.Request, Type: "google.protobuf.StringValue"})
	}
	var list []frame.Record
	for range requests {
		n.sys.Root.RequestFuture(actor.NewPID("oracle:1", "oracle"), text("?"), soon)
		list = append(list, asked.hears(frame.KindUser))
	}
	asked.say(frame.Record{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "bye"})
	await(t, n, func(d *remoting.Disconnected) bool { return d.Peer.Name == "oracle:1" })
	for _, r := range list {
		answer(r)
	}
	f := n.sys.Root.RequestFuture(actor.NewPID("other:1", "actor"), text("?"), soon)
	answer(other.hears(frame.KindUser))
	if _, err := remoting.Result(f); err != nil {
		t.Error(err)
	}
}
