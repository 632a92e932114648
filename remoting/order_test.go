package remoting_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// numbered returns a message with a sender's name and a number, of some length.
func numbered(sender, number, length int) *wrapperspb.BytesValue {
	b := make([]byte, max(length, 16))
	binary.BigEndian.PutUint64(b, uint64(sender))
	binary.BigEndian.PutUint64(b[8:], uint64(number))
	return wrapperspb.Bytes(b)
}

// inOrder takes numbered messages, and reports when it has had n. Each sender's have to come one
// after the other.
func inOrder(t *testing.T, n int, done chan<- string) actor.ReceiveFunc {
	last := map[uint64]uint64{}
	got := 0
	return func(ctx actor.Context) {
		m, ok := ctx.Message().(*wrapperspb.BytesValue)
		if !ok {
			return
		}
		sender, number := binary.BigEndian.Uint64(m.Value), binary.BigEndian.Uint64(m.Value[8:])
		if number != last[sender]+1 {
			t.Errorf("%s: number %d of sender %d came behind %d", ctx.Self().Id, number, sender, last[sender])
		}
		last[sender] = number
		if got++; got == n {
			done <- ctx.Self().Id
		}
	}
}

// Several senders on several loops, and several targets of each kind: each sender's messages come
// in order and once, small ones, and large ones between them, in both directions at the same time.
func TestOrder(t *testing.T) {
	const senders, each = 4, 10_000
	nodes := make([]*node, 2)
	for i := range nodes {
		nodes[i] = open(t, remoting.Config{Expose: everything, Overflow: remoting.Block}, 2)
		defer nodes[i].end()
	}
	done := make(chan string, 16)
	want := 0
	for _, n := range nodes {
		for kind, options := range n.kinds() {
			n.spawn("sink-"+kind, inOrder(t, senders*each, done), options...)
			want++
		}
	}
	var all sync.WaitGroup
	for i, n := range nodes {
		other := nodes[1-i]
		for s := range senders {
			all.Go(func() {
				var to []*actor.PID
				for kind := range other.kinds() {
					to = append(to, other.pid("sink-"+kind))
				}
				for number := range each {
					length := 16 + number%300
					if number%1000 == 500 {
						length = 100 << 10
					}
					for _, pid := range to {
						n.sys.Root.Send(pid, numbered(s, number+1, length))
					}
				}
			})
		}
	}
	for range want {
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			for i, n := range nodes {
				t.Errorf("%+v", n.info(nodes[1-i]))
			}
			t.Fatal("not all has come")
		}
	}
	all.Wait()
	for i, n := range nodes {
		c := n.info(nodes[1-i]).Counts
		if c.Sent != uint64(want/2*senders*each) || c.Received != c.Sent || c.Overflowed+c.Refused+c.Late != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// An actor's own messages keep their order, too, however it runs; a Stop overtakes them.
func TestOrderOfActors(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	const each = 2000
	done := make(chan string, 8)
	for kind, options := range a.kinds() {
		b.spawn("sink-"+kind, inOrder(t, each, done))
		a.spawn("sender-"+kind, func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				for i := range each {
					ctx.Request(b.pid("sink-"+kind), numbered(1, i+1, 16))
				}
			}
		}, options...)
	}
	for range a.kinds() {
		select {
		case <-done:
		case <-time.After(soon):
			t.Fatal("not all has come")
		}
	}
	if got := fmt.Sprint(b.info(a).Counts.Received); got != fmt.Sprint(3*each) {
		t.Error(got)
	}
}
