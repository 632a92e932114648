package reconnect_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/eventloop"
)

// onLoops is a configuration of several loops.
func onLoops(n int) actortest.Config {
	return actortest.Config{Runtime: rdma.Config{Loops: make([]eventloop.Config, n), Logger: quiet}}
}

// town is a node that makes an actor for each node that it does not know.
type town struct {
	w     *actortest.World
	rt    *rdma.Runtime
	id    uint64
	peers *reconnect.Peers

	mu    sync.Mutex
	links map[uint64]*tie
}

// tie is its actor for one peer.
type tie struct {
	diary *diary
	link  *actor.PID
}

func newTown(w *actortest.World, rt *rdma.Runtime, id uint64, strangers int) *town {
	n := &town{w: w, rt: rt, id: id, links: make(map[uint64]*tie)}
	n.peers = reconnect.NewPeers(reconnect.PeersConfig{
		Node: id, Incarnation: 1, Strangers: strangers,
		Unknown: func(s reconnect.Stranger) *actor.PID { return n.tie(s.Node, "").link },
	})
	listener := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Send(rt.CreateID(ctx.Self(), rdma.IDConfig{Route: n.peers.Route}), &rdma.Serve{Addr: ":7471"})
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Reject{})
		}
	}, rt.OnLoop()))
	w.T().Cleanup(func() { _ = w.System().Root.StopFuture(listener).Wait() })
	w.Wait()
	return n
}

// tie finds or makes the actor for a node.
func (n *town) tie(node uint64, addr string) *tie {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.links[node]; k != nil {
		return k
	}
	k := &tie{diary: newDiary(n.w, n.rt)}
	k.link = reconnect.Spawn(n.rt, k.diary.pid, reconnect.Config{Dial: rdma.Dial{Addr: addr}, Peers: n.peers, Peer: node})
	n.links[node] = k
	return k
}

// at is where the town with this id listens.
func at(id uint64) string { return fmt.Sprintf("10.0.0.%d:7471", id) }

// A node that nobody knows gets an actor, on whatever loop; messages flow both ways. When the
// connection is over, and nobody has said where the node is, the actor ends.
func TestUnknownNode(t *testing.T) {
	for loops := 1; loops <= 4; loops++ {
		t.Run(fmt.Sprintf("%d loops", loops), func(t *testing.T) {
			actortest.Run(t, onLoops(loops), func(w *actortest.World) {
				a, b := newTown(w, w.Runtime(), 1, 0), newTown(w, w.Host("mem1", "10.0.0.2"), 2, 0)
				// so that the listener's loop is another
				idle := w.System().Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, b.rt.OnLoop()))
				defer w.System().Root.Stop(idle)
				dials := a.tie(2, at(2))
				w.Advance(time.Second)
				accepts := b.links[1]
				if accepts == nil {
					t.Fatal("nobody was asked about an unknown node")
				}
				w.System().Root.Send(dials.link, rdma.NewSend([]byte("there")))
				w.System().Root.Send(accepts.link, rdma.NewSend([]byte("and back")))
				w.Advance(time.Second)
				for _, k := range []*tie{dials, accepts} {
					k.diary.read(w, func() {
						if k.diary.up == nil || len(k.diary.received) != 1 {
							t.Fatalf("up %v, received %q", k.diary.up, k.diary.received)
						}
					})
				}
				if up := accepts.diary.up; up.Node != 1 || up.Incarnation != 1 || !up.Accepted {
					t.Errorf("the accepting side got %+v", up)
				}
				if up := dials.diary.up; up.Node != 2 || up.Incarnation != 1 || up.Accepted {
					t.Errorf("the dialling side got %+v", up)
				}
				w.System().Root.Send(dials.link, &rdma.Close{})
				w.Advance(9 * time.Second)
				accepts.diary.read(w, func() {
					if accepts.diary.closed != nil || accepts.diary.up != nil {
						t.Errorf("after 9 s: up %v, %v", accepts.diary.up, accepts.diary.closed)
					}
				})
				w.Advance(2 * time.Second)
				accepts.diary.read(w, func() {
					if c := accepts.diary.closed; c == nil || !errors.Is(c.Err, reconnect.ErrGaveUp) {
						t.Errorf("without a connection and an address it ended because of %v", c)
					}
				})
			})
		})
	}
}
