package reconnect_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/states"
)

// node is one of two that dial each other.
type node struct {
	w        *actortest.World
	rt       *rdma.Runtime
	id       uint64
	inc      uint64
	peer     uint64
	at       string // the peer
	diary    *diary
	listener *actor.PID // owns it
	link     *actor.PID
	peers    *reconnect.Peers
	cfg      rdma.IDConfig // its identifiers'
}

// listen makes the node accept requests.
func (n *node) listen() {
	n.peers = reconnect.NewPeers(reconnect.PeersConfig{Node: n.id, Incarnation: n.inc})
	peers, rt, cfg := n.peers, n.rt, n.cfg
	n.diary = newDiary(n.w, n.rt)
	n.listener = n.w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Send(rt.CreateID(ctx.Self(), peers.Listener(cfg)), &rdma.Serve{Addr: ":7471"})
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Reject{})
		}
	}, n.rt.OnLoop()))
	n.w.Wait()
}

func (n *node) dial() {
	n.link = reconnect.Spawn(n.rt, n.diary.pid, reconnect.Config{
		Dial: rdma.Dial{Addr: n.at, PrivateData: []byte("hi")}, ID: n.cfg, Peers: n.peers, Peer: n.peer, Rand: rand.New(rand.NewPCG(n.id, n.inc)),
	})
}

// dies ends the node's process, as far as this test can: its connections are cut.
func (n *node) dies() {
	root := n.w.System().Root
	_ = root.StopFuture(n.link).Wait()
	_ = root.StopFuture(n.listener).Wait()
	n.w.Wait()
}

func (n *node) say(text string) { n.w.System().Root.Send(n.link, rdma.NewSend([]byte(text))) }

func pair(w *actortest.World, lowFirst bool) (a, b *node) {
	a = &node{w: w, rt: w.Runtime(), id: 1, inc: 1, peer: 2, at: "10.0.0.2:7471"}
	b = &node{w: w, rt: w.Host("mem1", "10.0.0.2"), id: 2, inc: 1, peer: 1, at: "10.0.0.1:7471"}
	if !lowFirst {
		a.id, a.peer, b.id, b.peer = 2, 1, 1, 2
	}
	return a, b
}

// eachOrder runs test with two nodes, of which the first has the lower id, and the higher one.
func eachOrder(t *testing.T, test func(t *testing.T, w *actortest.World, a, b *node)) {
	t.Helper()
	for _, lowFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("low first %v", lowFirst), func(t *testing.T) {
			actortest.Run(t, onLoops(2), func(w *actortest.World) {
				a, b := pair(w, lowFirst)
				test(t, w, a, b)
			})
		})
	}
}

// one checks that the two have one connection, the same, and that it works in both directions.
func one(t *testing.T, w *actortest.World, a, b *node) {
	t.Helper()
	established := 0
	for _, n := range []*node{a, b} {
		for _, i := range n.rt.Inspect() {
			if i.State.String() == "connected" {
				established++
			}
		}
	}
	if established != 2 {
		t.Errorf("%d ends of connections, want 2", established)
	}
	var downs [2]int
	for i, n := range []*node{a, b} {
		n.diary.read(w, func() {
			if n.diary.up == nil {
				t.Fatalf("node %d is not up: %+v", n.id, n.diary.downs)
			}
			if string(n.diary.up.Established.PrivateData) != "" && string(n.diary.up.Established.PrivateData) != "hi" {
				t.Errorf("node %d got the private data %q", n.id, n.diary.up.Established.PrivateData)
			}
			downs[i] = len(n.diary.downs)
			n.diary.received = nil
		})
	}
	if a.diary.up.Accepted == b.diary.up.Accepted {
		t.Error("both or neither have accepted")
	}
	a.say("from a")
	b.say("from b")
	w.Advance(time.Second)
	for i, n := range []*node{a, b} {
		n.diary.read(w, func() {
			want := []string{"from b", "from a"}[i]
			if len(n.diary.received) != 1 || n.diary.received[0] != want {
				t.Errorf("node %d has received %q, want %q", n.id, n.diary.received, want)
			}
			if len(n.diary.downs) != downs[i] {
				t.Errorf("node %d went down while nothing happened", n.id)
			}
		})
	}
}

// The dials of two nodes cross, with 0 to 8 ms between them and 0 to 2 ms on the way. In every
// case one connection is left, and no message is lost.
func TestSimultaneousOpen(t *testing.T) {
	for _, lowFirst := range []bool{true, false} {
		for _, delay := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond} {
			for apart := range 9 {
				for flavor, opt := range map[string]actortest.Config{"iWARP": {}, "InfiniBand": {InfiniBand: true}, "loops": onLoops(3)} {
					t.Run(fmt.Sprintf("%s/low first %v/%v/%d ms", flavor, lowFirst, delay, apart), func(t *testing.T) {
						actortest.Run(t, opt, func(w *actortest.World) {
							a, b := pair(w, lowFirst)
							a.listen()
							b.listen()
							w.Delay(delay)
							a.dial()
							a.say("early")
							w.Advance(time.Duration(apart) * time.Millisecond)
							b.dial()
							w.Advance(30 * time.Second)
							b.diary.read(w, func() {
								if len(b.diary.received) != 1 || b.diary.received[0] != "early" {
									t.Errorf("b has received %q", b.diary.received)
								}
							})
							one(t, w, a, b)
						})
					})
				}
			}
		}
	}
}

// The rule names the winner: when both dial, the lower id's dial stands, and the other node gets
// the reason.
func TestLowerNodeWins(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *actortest.World, a, b *node) {
		a.listen()
		b.listen()
		w.Delay(10 * time.Millisecond)
		a.dial()
		b.dial()
		w.Advance(200 * time.Millisecond)
		one(t, w, a, b)
		low, high := a, b
		if a.id > b.id {
			low, high = b, a
		}
		if low.diary.up.Accepted || len(low.diary.downs) > 0 {
			t.Errorf("the lower node: %+v after %+v", low.diary.up, low.diary.downs)
		}
		high.diary.read(w, func() {
			if len(high.diary.downs) != 1 || !errors.Is(high.diary.downs[0].Err, reconnect.ErrSimultaneous) {
				t.Errorf("the higher node got %+v", high.diary.downs)
			}
		})
	})
}

// A node that restarts replaces the connection of its earlier incarnation immediately, although the
// peer has not noticed that this has ended.
func TestNewIncarnation(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *actortest.World, a, b *node) {
		a.listen()
		b.listen()
		a.dial()
		w.Advance(time.Second)
		b.dial()
		w.Advance(10 * time.Second)
		one(t, w, a, b)
		w.Silence("10.0.0.2") // so that a hears nothing of the end
		b.dies()
		w.Advance(time.Second)
		w.Unsilence("10.0.0.2")
		a.diary.read(w, func() {
			if a.diary.up == nil {
				t.Fatal("a has noticed")
			}
		})
		b.inc++
		b.listen()
		b.dial()
		w.Advance(10 * time.Millisecond)
		one(t, w, a, b)
		a.diary.read(w, func() {
			if d := a.diary.downs[len(a.diary.downs)-1]; !errors.Is(d.Err, reconnect.ErrReplaced) {
				t.Errorf("a got %+v", d)
			}
		})
	})
}

// If a node has lost a connection, and its peer has not noticed that, the node gets another one:
// of one incarnation, the later dial counts.
func TestHalfOpen(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *actortest.World, a, b *node) {
		a.listen()
		b.listen()
		a.dial()
		w.Advance(time.Second)
		b.dial()
		w.Advance(10 * time.Second)
		one(t, w, a, b)
		w.Silence("10.0.0.2")
		for _, i := range b.rt.Inspect() {
			if i.State.String() == "connected" {
				w.System().Root.Send(i.PID, &rdma.DestroyID{})
			}
		}
		w.Wait()
		w.Unsilence("10.0.0.2")
		w.Advance(time.Second)
		one(t, w, a, b)
	})
}

// If an earlier incarnation is still there, it does not replace the connection of the later one,
// but gets one when that has gone. A node cannot have two actors for one peer.
func TestStaleIncarnation(t *testing.T) {
	actortest.Run(t, onLoops(2), func(w *actortest.World) {
		a, b := pair(w, true)
		a.listen()
		a.dial()
		b.inc = 2
		b.listen()
		b.dial()
		w.Advance(10 * time.Second)
		one(t, w, a, b)
		downs := len(a.diary.downs)
		old := *b
		old.inc = 1
		old.listen()
		old.dial()
		w.Advance(time.Minute)
		old.diary.read(w, func() {
			if n := len(old.diary.downs); n < 3 || old.diary.closed != nil || !errors.Is(old.diary.downs[n-1].Err, reconnect.ErrStale) {
				t.Errorf("the earlier incarnation: %+v, %+v", old.diary.closed, old.diary.downs)
			}
		})
		one(t, w, a, b)
		if n := len(a.diary.downs); n != downs {
			t.Errorf("the later incarnation lost %d connections", n-downs)
		}
		b.dies()
		w.Advance(time.Minute)
		one(t, w, a, &old)
		second := newDiary(w, a.rt)
		reconnect.Spawn(a.rt, second.pid, reconnect.Config{Dial: rdma.Dial{Addr: a.at}, Peers: a.peers, Peer: 2})
		second.read(w, func() {
			if second.closed == nil {
				t.Error("two actors for one peer")
			}
		})
	})
}

// impostor starts a node at another address that claims to be b, with a much later incarnation.
func impostor(w *actortest.World, a, b *node) *node {
	return &node{w: w, rt: w.Host("mem2", "10.0.0.3"), id: b.id, inc: 1 << 63, peer: a.id, at: "10.0.0.1:7471"}
}

// An impostor does not replace the connection of a node that is connected from another address.
func TestImpostorOfAConnectedNode(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *actortest.World, a, b *node) {
		a.listen()
		b.listen()
		a.dial()
		b.dial()
		w.Advance(10 * time.Second)
		one(t, w, a, b)
		downs := len(a.diary.downs)
		x := impostor(w, a, b)
		x.listen()
		x.dial()
		w.Advance(5 * time.Minute)
		one(t, w, a, b)
		if n := len(a.diary.downs); n != downs {
			t.Errorf("the impostor has taken the connection %d times", n-downs)
		}
		x.diary.read(w, func() {
			if x.diary.up != nil || len(x.diary.downs) < 3 {
				t.Errorf("the impostor is up: %v, after %d attempts", x.diary.up != nil, len(x.diary.downs))
			}
		})
	})
}

// While a node is not there an impostor may pass for it. When the node connects it replaces the
// impostor, which is no longer accepted.
func TestImpostorOfAnAbsentNode(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *actortest.World, a, b *node) {
		a.listen()
		a.dial()
		x := impostor(w, a, b)
		x.listen()
		x.dial()
		w.Advance(time.Minute)
		x.diary.read(w, func() {
			if x.diary.up == nil {
				t.Error("nobody is there to say that it is another")
			}
		})
		b.listen()
		b.dial()
		w.Advance(time.Minute)
		one(t, w, a, b)
		downs := len(a.diary.downs)
		w.Advance(5 * time.Minute)
		one(t, w, a, b)
		if n := len(a.diary.downs); n != downs {
			t.Errorf("the impostor has taken the connection %d times", n-downs)
		}
	})
}

// A node has had an incarnation from the future, because its clock was wrong. It is accepted again
// with the right one, whether its peer has noticed its end or not.
func TestFutureIncarnation(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		t.Run(fmt.Sprintf("noticed %v", noticed), func(t *testing.T) {
			eachOrder(t, func(t *testing.T, w *actortest.World, a, b *node) {
				b.inc = 1 << 62
				a.listen()
				b.listen()
				a.dial()
				b.dial()
				w.Advance(10 * time.Second)
				one(t, w, a, b)
				if !noticed {
					w.Silence("10.0.0.2")
				}
				b.dies()
				w.Advance(time.Second)
				if !noticed {
					w.Unsilence("10.0.0.2")
				}
				b.inc = 7
				b.listen()
				b.dial()
				w.Advance(3 * time.Minute)
				one(t, w, a, b)
			})
		})
	}
}

// If a connection that was accepted goes before it has come about, the actor dials its node.
func TestRequestHasGone(t *testing.T) {
	actortest.Run(t, actortest.Config{InfiniBand: true}, func(w *actortest.World) {
		a, b := pair(w, true)
		a.listen()
		b.listen()
		w.Delay(10 * time.Millisecond)
		b.dial()
		a.at = "10.0.0.2:1" // no listener is there, so that a is waiting
		a.dial()
		for accepted := false; !accepted; w.Advance(time.Millisecond) {
			for _, i := range a.rt.Inspect() {
				if i.Peer.Port() != 0 && i.State != states.Connected && i.Local.Port() == 7471 {
					w.System().Root.Send(i.PID, &rdma.DestroyID{})
					accepted = true
				}
			}
		}
		b.dies()
		w.Advance(time.Minute)
		a.diary.read(w, func() {
			if n := len(a.diary.downs); n < 5 {
				t.Errorf("after a minute without its peer a node has dialled %d times", n)
			}
		})
	})
}

// A peer that requests a connection and goes before it is accepted does not end the actor, and does
// not count as an attempt of this side.
func TestRequestThatFails(t *testing.T) {
	for _, infiniBand := range []bool{false, true} {
		t.Run(fmt.Sprintf("InfiniBand %v", infiniBand), func(t *testing.T) {
			actortest.Run(t, actortest.Config{InfiniBand: infiniBand}, func(w *actortest.World) {
				a, b := pair(w, true)
				a.listen()
				b.listen()
				a.diary = newDiary(w, a.rt)
				a.link = reconnect.Spawn(a.rt, a.diary.pid, reconnect.Config{
					Dial: rdma.Dial{Addr: "10.0.0.2:1"}, Peers: a.peers, Peer: 2, Attempts: 3,
					Backoff: reconnect.Backoff{First: time.Hour, Most: time.Hour},
				})
				busy := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(string); ok {
						time.Sleep(100 * time.Millisecond)
					}
				}, a.rt.OnLoop()))
				defer w.System().Root.Stop(busy)
				for range 10 {
					w.System().Root.Send(busy, "be busy")
					b.dial()
					time.Sleep(50 * time.Millisecond)
					_ = w.System().Root.StopFuture(b.link).Wait()
					w.Advance(time.Second)
				}
				a.diary.read(w, func() {
					if a.diary.closed != nil {
						t.Fatalf("it has ended: %v", a.diary.closed.Err)
					}
					failed := 0
					for _, d := range a.diary.downs {
						if !d.WasUp {
							failed++
						}
					}
					if failed < 5 {
						t.Errorf("%d of 10 requests have failed", failed)
					}
				})
			})
		})
	}
}
