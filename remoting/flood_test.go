package remoting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// inboxMost is how much of a peer's messages may wait for a node's actors.
const inboxMost = 8 << 20

// blockedActor spawns an actor that consumes nothing until the test has ended.
func blockedActor(t *testing.T, n *node, name string) {
	block := make(chan struct{})
	n.spawn(name, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*emptypb.Empty); ok {
			<-block
		}
	}, n.rt.OffLoop())
	t.Cleanup(func() { close(block) })
}

const emptyType = "google.protobuf.Empty"

// flood sends frames until no further ones are accepted.
func (s *stranger) flood(frames int, b []byte) {
	for range frames {
		s.send(b)
	}
}

// settled waits until a count stops changing.
func settled(count func() uint64) uint64 {
	for was := count(); ; {
		time.Sleep(200 * time.Millisecond)
		now := count()
		if now == was {
			return now
		}
		was = now
	}
}

// However little of a frame a message needs, the queue of an actor that consumes nothing is
// bounded: the frames wait, not their messages. That also holds for a peer that connects
// repeatedly.
func TestTinyMessages(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything})
	blockedActor(t, n, "slow")
	n.spawn("echo", echo)
	var w frame.Writer
	for w.Len() < 1<<20 {
		if err := w.Append(&frame.Record{Kind: frame.KindUser, Target: "slow", Type: emptyType}); err != nil {
			t.Fatal(err)
		}
	}
	received := func() (sum uint64) { return n.Peers()[0].Counts.Received }
	for i := range 3 {
		s := meetAgain(t, n, "tiny:1")
		s.flood(20, w.Bytes())
		if got := settled(received); got > inboxMost/128 {
			t.Fatalf("connection %d: %d messages wait", i, got)
		}
		s.sys.Root.Send(s.link, &rdma.DestroyID{})
		eventually(t, "it does not end", func() bool { return !n.Peers()[0].Connected })
	}
	good(t, n)
}

// meetAgain connects a stranger as soon as its node is known to have no connection.
func meetAgain(t *testing.T, n *node, name string) *stranger {
	t.Helper()
	for over := time.Now().Add(soon); ; {
		s := meet(t, n, name)
		select {
		case <-s.up:
			s.hello()
			s.hears(frame.KindHello)
			s.send(nil)
			return s
		case err := <-s.down:
			if time.Now().After(over) {
				t.Fatalf("not connected: %v", err)
			}
		}
	}
}

// Besides its body, a message's header and long names count, too.
func TestMessagesWithoutBodies(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything})
	blockedActor(t, n, "slow")
	long := strings.Repeat("n", frame.MaxName)
	for name, r := range map[string]frame.Record{
		"headers": {Header: []frame.Pair{{Key: "k", Value: strings.Repeat("v", frame.MaxHeader-1)}}},
		"pairs":   {Header: manyPairs()},
		"senders": {Sender: frame.PID{ID: long, Address: long[:frame.MaxName-1]}},
	} {
		t.Run(name, func(t *testing.T) {
			r.Kind, r.Target, r.Type = frame.KindUser, "slow", emptyType
			s := meet(t, n, "bodiless:"+name).introduce()
			var w frame.Writer
			for w.Len() < 1<<20 {
				if r.Sender.ID != "" {
					r.Sender.ID = fmt.Sprint(w.Len(), long)[:frame.MaxName]
				}
				if err := w.Append(&r); err != nil {
					t.Fatal(err)
				}
			}
			s.flood(40, w.Bytes())
			count := func() uint64 { return infoOf(n, s.name).Counts.Received }
			if got := settled(count) * uint64(r.Size()); got > 2*inboxMost {
				t.Errorf("%d bytes wait", got)
			}
			s.sys.Root.Send(s.link, &rdma.DestroyID{})
		})
	}
}

func manyPairs() (list []frame.Pair) {
	for i := range frame.MaxPairs {
		list = append(list, frame.Pair{Key: fmt.Sprint(i)})
	}
	return list
}

// Messages in waiting frames arrive, in order, when the actor continues.
func TestFramesThatWait(t *testing.T) {
	const many = 200_000
	a, b := start(t, remoting.Config{Overflow: remoting.Block}), start(t, remoting.Config{Expose: everything})
	block, all := make(chan struct{}), make(chan bool, 1)
	next := uint32(0)
	b.spawn("slow", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.UInt32Value); ok {
			<-block
			if m.Value != next {
				t.Errorf("%d came, want %d", m.Value, next)
			}
			if next++; next == many {
				all <- true
			}
		}
	}, b.rt.OffLoop())
	b.spawn("echo", echo)
	go func() {
		to := b.pid("slow")
		for i := range uint32(many) {
			a.sys.Root.Send(to, wrapperspb.UInt32(i))
		}
	}()
	eventually(t, "nothing comes", func() bool { return b.info(a).Counts.Received > 0 })
	if got := settled(func() uint64 { return b.info(a).Counts.Received }); got > inboxMost/128 || got == 0 {
		t.Errorf("%d messages wait", got)
	}
	close(block)
	select {
	case <-all:
	case <-time.After(soon):
		t.Error("not all came")
	}
	allowed(t, a, b.pid("echo"))
}
