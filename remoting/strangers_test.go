package remoting_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// away ends a stranger's connection.
func (s *stranger) away() { s.sys.Root.Send(s.link, &rdma.DestroyID{}) }

// connected returns how many peers of a node are connected.
func (n *node) connected() (count int) {
	for _, i := range n.Peers() {
		if i.Connected {
			count++
		}
	}
	return count
}

// from starts a node that dials from another address than the others.
func from(t *testing.T, addr string) *node {
	t.Helper()
	src, err := rdma.ParseAddr(addr + ":0")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, remoting.Config{Dial: rdma.Dial{Src: src}})
}

// A peer that uses many names, one after the other, occupies no places of the nodes that this one
// sends to, nor of peers from other addresses, and finds its places again.
func TestManyComeAndGo(t *testing.T) {
	n, other := start(t, remoting.Config{Expose: everything, Peers: 64, Patience: time.Hour}), start(t, remoting.Config{Expose: everything})
	n.spawn("echo", echo)
	other.spawn("echo", echo)
	host := start(t, remoting.Config{})
	came := 0
	for round := range 8 {
		for i := range 12 {
			s := meetFrom(t, host, n, fmt.Sprint("comes and goes:", round, ".", i))
			select {
			case up := <-s.up:
				s.up <- up
				s.introduce().away()
				came++
			case <-s.down: // no place so far
				s.away()
				time.Sleep(time.Millisecond)
			}
		}
		eventually(t, "they do not leave", func() bool { return n.connected() == 0 })
	}
	eventually(t, "their links stay", func() bool { return len(n.Peers()) == 0 })
	if came < 32 {
		t.Errorf("%d found a place", came)
	}
	if got, err := n.ask(other.pid("echo"), text("out")); err != nil {
		t.Error(got, err)
	}
	if got, err := from(t, "127.0.0.2").ask(n.pid("echo"), text("in")); err != nil {
		t.Error(got, err)
	}
}

// Who names senders at nodes that are not there, which others answer, keeps this node from
// connecting to no other node, by however many names it comes.
func TestNamedSendersAreBounded(t *testing.T) {
	n, other := start(t, remoting.Config{Expose: everything, Peers: 64, Patience: time.Hour}), start(t, remoting.Config{Expose: everything})
	n.spawn("echo", echo)
	other.spawn("echo", echo)
	host := start(t, remoting.Config{})
	sent := 0
	var all []*stranger
	for i := range 8 {
		s := meetFrom(t, host, n, fmt.Sprint("names others:", i)).introduce()
		all = append(all, s)
		for j := range 16 {
			s.say(frame.Record{
				Kind: frame.KindUser, Target: "echo", Type: "google.protobuf.StringValue",
				Sender: frame.PID{Address: fmt.Sprint("127.0.0.1:", 1+16*i+j), ID: "x"},
			})
			sent++
		}
	}
	eventually(t, "not all came", func() (all bool) {
		received := 0
		for _, i := range n.Peers() {
			received += int(i.Counts.Received)
		}
		return received == sent
	})
	if got, err := n.ask(other.pid("echo"), text("out")); err != nil {
		t.Error(got, err)
	}
	// one whose senders are at a node that is known here
	friend := from(t, "127.0.0.2")
	third, in := other.probe("third")
	friend.sys.Root.RequestWithCustomSender(n.pid("echo"), text("for a third one"), third)
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "for a third one" {
		t.Errorf("%v", m)
	}
	for _, s := range all {
		s.away()
	}
}
