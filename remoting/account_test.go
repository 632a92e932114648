package remoting_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
)

// account returns the numbers of messages that a node has sent and received, including those of
// forgotten peers.
func (n *node) account() (sent, received uint64) {
	peers, forgotten := n.Account()
	sent, received = forgotten.Sent, forgotten.Received
	for i := range peers {
		sent += peers[i].Counts.Sent
		received += peers[i].Counts.Received
	}
	return sent, received
}

// The counts of a node only grow, whichever peers it forgets, and are complete in the end.
func TestAccount(t *testing.T) {
	const rounds, nodes = 4, 8
	n := start(t, remoting.Config{Expose: everything, Patience: 10 * time.Millisecond})
	n.spawn("echo", echo)
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		var sent, received uint64
		for {
			s, r := n.account()
			if s < sent || r < received {
				t.Errorf("sent %d, and %d before; received %d, and %d before", s, sent, r, received)
			}
			sent, received = s, r
			select {
			case <-over:
				return
			default:
			}
		}
	}()
	for range rounds {
		passBy(t, n, nodes)
	}
	close(over)
	<-watched
	if sent, received := n.account(); sent != 2*rounds*nodes || received != 2*rounds*nodes {
		t.Errorf("sent %d, received %d, want %d of each", sent, received, 2*rounds*nodes)
	}
}

// Dead letters are messages that this node's actors have sent, all of them: also the requests of
// futures, and no Stop.
func TestDeadLettersOfSent(t *testing.T) {
	sent := make(chan struct{})
	n := start(t, remoting.Config{Expose: everything, Patience: 100 * time.Millisecond, Resolve: func(ctx context.Context, name string) (string, error) {
		<-sent // the first dial fails when all are sent
		return name, ctx.Err()
	}})
	nobody := actor.NewPID("127.0.0.1:1", "nobody")
	n.sys.Root.Stop(nobody)
	f := n.sys.Root.RequestFuture(nobody, text("x"), soon)
	n.sys.Root.Send(nobody, text("x"))
	close(sent)
	if got, err := remoting.Result(f); err == nil {
		t.Error(got)
	}
	eventually(t, "they are not all dead letters", func() bool {
		peers, c := n.Account()
		for i := range peers {
			c.Add(peers[i].Counts)
		}
		if c.DeadLetters > 2 {
			t.Errorf("%+v", c)
		}
		return c.Sent == 2 && c.DeadLetters == 2 && len(peers) == 0
	})
}
