package reconnect_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// the keys of the nodes. Each pair has a separate one.
var identities = map[string][2]uint64{"a-b": {1, 2}, "a-c": {1, 3}, "b-c": {2, 3}}

// secretive is a node of a network where each two have a key.
type secretive struct {
	*node
	cfg rdma.IDConfig
}

// secret makes the node called id, which may claim to be another one. Its dials use the key own,
// and its listener takes all that are its.
func secret(w *actortest.World, rt *rdma.Runtime, id, claims uint64, own string) *secretive {
	n := &secretive{node: &node{w: w, rt: rt, id: claims, inc: 1}}
	keys := new(rdma.Keyring)
	var all []rdma.Credential
	for name, of := range identities {
		c := rdma.Credential{Identity: name}
		copy(c.Key[:], name+" is not a secret in a test")
		if of[0] == id || of[1] == id {
			all = append(all, c)
		}
		if name == own {
			if err := keys.Use(c); err != nil {
				w.T().Fatal(err)
			}
		}
	}
	if err := keys.Accept(all...); err != nil {
		w.T().Fatal(err)
	}
	n.cfg.Security = &rdma.Security{Mode: rdma.PSK, Keys: keys}
	n.peers = reconnect.NewPeers(reconnect.PeersConfig{
		Node: claims, Incarnation: n.inc,
		Proves: func(identity string, node uint64) bool {
			of := identities[identity]
			return of[0] == id && of[1] == node || of[1] == id && of[0] == node
		},
	})
	n.diary = newDiary(w, rt)
	return n
}

// listen makes the node accept requests.
func (n *secretive) listen() {
	cfg, rt := n.peers.Listener(n.cfg), n.rt
	n.listener = n.w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Send(rt.CreateID(ctx.Self(), cfg), &rdma.Serve{Addr: ":7471"})
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Reject{})
		}
	}, n.rt.OnLoop()))
	n.w.Wait()
}

func (n *secretive) dial(peer uint64, addr string) {
	n.link = reconnect.Spawn(n.rt, n.diary.pid, reconnect.Config{
		Dial: rdma.Dial{Addr: addr}, ID: n.cfg, Peers: n.peers, Peer: peer, Rand: rand.New(rand.NewPCG(n.id, n.inc)),
		Permanent: func(rdma.Failure) bool { return false },
	})
}

// failed checks that the last generation has ended for want of the identity, and was never up.
func (n *secretive) failed() {
	n.w.T().Helper()
	n.diary.read(n.w, func() {
		d := n.diary.downs
		if n.diary.ups != 0 || len(d) == 0 || !errors.Is(d[len(d)-1].Err, reconnect.ErrWrongIdentity) {
			n.w.T().Errorf("%d times up, and %+v", n.diary.ups, d)
		}
	})
}

// A node that is authenticated claims to be another one. It is rejected, whether that node is
// connected or not, also from that node's own address, and takes nothing away.
func TestHostileNodeClaimsAnother(t *testing.T) {
	for _, at := range []string{"elsewhere", "at the node's address"} {
		t.Run(at, func(t *testing.T) {
			inRig(t, func(r *rig) {
				a := secret(r.World, r.Runtime(), 1, 1, "a-b")
				b := secret(r.World, r.far, 2, 2, "a-b")
				b.listen()
				host := a.rt
				if at == "elsewhere" {
					host = r.Host("mem2", "10.0.0.3")
				}
				c := secret(r.World, host, 3, 1, "b-c")
				c.dial(2, "10.0.0.2:7471")
				b.dial(1, "10.0.0.1:7471") // there is no listener yet
				r.Advance(5 * time.Second)
				c.failed()
				a.listen()
				a.dial(2, "10.0.0.2:7471")
				r.Advance(time.Minute)
				one(t, r.World, a.node, b.node)
				downs := len(a.diary.downs)
				r.Advance(time.Minute)
				c.failed()
				if len(a.diary.downs) != downs {
					t.Errorf("its connection was taken away: %+v", a.diary.downs[downs:])
				}
				one(t, r.World, a.node, b.node)
			})
		})
	}
}

// An authenticated node answers a dial of another one.
func TestHostileNodeAnswers(t *testing.T) {
	inRig(t, func(r *rig) {
		a := secret(r.World, r.Runtime(), 1, 1, "a-c")
		c := secret(r.World, r.far, 3, 2, "a-c")
		c.listen()
		c.dial(1, "10.0.0.9:7471")
		a.dial(2, "10.0.0.2:7471")
		r.Advance(time.Second)
		a.failed()
		if n := a.diary.downs; len(n) < 2 {
			t.Errorf("it has tried only once: %+v", n)
		}
	})
}

// A node has moved, and its last connection has not ended: its identity is proved, so it gets a
// connection from elsewhere immediately.
func TestNodeComesFromElsewhere(t *testing.T) {
	inRig(t, func(r *rig) {
		a := secret(r.World, r.Runtime(), 1, 1, "a-b")
		b := secret(r.World, r.far, 2, 2, "a-b")
		b.listen()
		a.dial(2, "10.0.0.2:7471")
		b.dial(1, "10.0.0.1:7471")
		r.Advance(5 * time.Second)
		b.diary.read(r.World, func() {
			if b.diary.up == nil {
				t.Fatalf("not connected: %+v", b.diary.downs)
			}
		})
		moved := secret(r.World, r.Host("mem2", "10.0.0.3"), 1, 1, "a-b")
		moved.peers = reconnect.NewPeers(reconnect.PeersConfig{Node: 1, Incarnation: 2})
		moved.dial(2, "10.0.0.2:7471")
		r.Advance(100 * time.Millisecond)
		moved.diary.read(r.World, func() {
			if moved.diary.up == nil {
				t.Errorf("the node is kept out: %+v", moved.diary.downs)
			}
		})
		b.diary.read(r.World, func() {
			if up := b.diary.up; up == nil || up.Incarnation != 2 || up.Established.Identity != "a-b" {
				t.Errorf("the other node has %+v", up)
			}
		})
	})
}
