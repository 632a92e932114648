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

// onLoops returns a configuration of several loops.
func onLoops(n int) actortest.Config {
	return actortest.Config{Runtime: rdma.Config{Loops: make([]eventloop.Config, n), Logger: quiet}}
}

// town is a node that makes an actor for each node that it does not know.
type town struct {
	w     *actortest.World
	rt    *rdma.Runtime
	id    uint64
	peers *reconnect.Peers
	cfg   reconnect.PeersConfig

	mu    sync.Mutex
	asked int
	links map[uint64]*tie
}

// tie is its actor for one peer.
type tie struct {
	*diary
	link *actor.PID
}

func newTown(w *actortest.World, rt *rdma.Runtime, id uint64, cfg ...reconnect.PeersConfig) *town {
	n := &town{w: w, rt: rt, id: id, cfg: first(cfg), links: make(map[uint64]*tie)}
	n.cfg.Node, n.cfg.Incarnation = id, 1
	if n.cfg.Unknown == nil {
		n.cfg.Unknown = func(s reconnect.Stranger) *actor.PID {
			n.mu.Lock()
			n.asked++
			n.mu.Unlock()
			return n.tie(s.Node, "").link
		}
	}
	n.peers = reconnect.NewPeers(n.cfg)
	listener := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Send(rt.CreateID(ctx.Self(), n.peers.Listener(rdma.IDConfig{})), &rdma.Serve{Addr: ":7471"})
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
	if k := n.links[node]; k != nil && !k.over() {
		return k
	}
	k := &tie{diary: newDiary(n.w, n.rt)}
	k.link = reconnect.Spawn(n.rt, k.pid, reconnect.Config{Dial: rdma.Dial{Addr: addr}, Peers: n.peers, Peer: node})
	n.links[node] = k
	return k
}

// over reports whether the actor has ended.
func (d *diary) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed != nil
}

// ups counts the nodes to which it has a connection.
func (n *town) ups() (up int) {
	n.w.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range n.links {
		k.read(n.w, func() {
			if k.up != nil {
				up++
			}
		})
	}
	return up
}

// at returns where the town with this id listens.
func at(id uint64) string { return fmt.Sprintf("10.0.0.%d:7471", id) }

// An unknown node gets an actor, on whatever loop; messages flow both ways. When the connection is
// over, and the actor was sent no Address, it ends.
func TestUnknownNode(t *testing.T) {
	for loops := 1; loops <= 4; loops++ {
		t.Run(fmt.Sprintf("%d loops", loops), func(t *testing.T) {
			actortest.Run(t, onLoops(loops), func(w *actortest.World) {
				a, b := newTown(w, w.Runtime(), 1), newTown(w, w.Host("mem1", "10.0.0.2"), 2)
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
					k.read(w, func() {
						if k.up == nil || len(k.received) != 1 {
							t.Fatalf("up %v, received %q", k.up, k.received)
						}
					})
				}
				if up := accepts.up; up.Node != 1 || up.Incarnation != 1 || !up.Accepted {
					t.Errorf("the accepting side got %+v", up)
				}
				if up := dials.up; up.Node != 2 || up.Incarnation != 1 || up.Accepted {
					t.Errorf("the dialling side got %+v", up)
				}
				w.System().Root.Send(dials.link, &rdma.Close{})
				w.Advance(9 * time.Second)
				accepts.read(w, func() {
					if accepts.closed != nil || accepts.up != nil {
						t.Errorf("after 9 s: up %v, %v", accepts.up, accepts.closed)
					}
				})
				w.Advance(2 * time.Second)
				accepts.read(w, func() {
					if c := accepts.closed; c == nil || !errors.Is(c.Err, reconnect.ErrGaveUp) {
						t.Errorf("without a connection and an address it ended because of %v", c)
					}
				})
			})
		})
	}
}

// works checks that two towns have one connection, and that a message passes each way.
func works(t *testing.T, w *actortest.World, a, b *town) {
	t.Helper()
	to, from := a.tie(b.id, at(b.id)), b.tie(a.id, at(a.id))
	for _, k := range []*tie{to, from} {
		k.read(w, func() {
			if k.up == nil {
				t.Fatalf("not up: %+v", k.downs)
			}
			k.received = nil
		})
	}
	if to.up.Accepted == from.up.Accepted {
		t.Error("both or neither have accepted")
	}
	w.System().Root.Send(to.link, rdma.NewSend([]byte("x")))
	w.System().Root.Send(from.link, rdma.NewSend([]byte("y")))
	w.Advance(time.Second)
	for _, k := range []*tie{to, from} {
		k.read(w, func() {
			if len(k.received) != 1 {
				t.Errorf("received %q", k.received)
			}
		})
	}
}

// Unknown nodes dial one another at the same time, on several loops. In every case each pair has
// one connection.
func TestUnknownNodesMeet(t *testing.T) {
	for loops := 1; loops <= 4; loops++ {
		for _, delay := range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%d loops/%v", loops, delay), func(t *testing.T) {
				actortest.Run(t, onLoops(loops), func(w *actortest.World) {
					const n = 6
					towns := []*town{newTown(w, w.Runtime(), 1)}
					for id := uint64(2); id <= n; id++ {
						towns = append(towns, newTown(w, w.Host(fmt.Sprint("mem", id), fmt.Sprint("10.0.0.", id)), id))
					}
					w.Delay(delay)
					for i, a := range towns {
						for _, b := range towns {
							if a != b {
								a.tie(b.id, at(b.id))
							}
						}
						if i%2 == 0 {
							w.Advance(delay)
						}
					}
					w.Advance(10 * time.Second)
					for i, a := range towns {
						// n with the listener
						if up := a.ups(); up != n-1 || len(a.rt.Inspect()) != n {
							t.Errorf("node %d has %d connections, and %d identifiers", a.id, up, len(a.rt.Inspect()))
						}
						for _, b := range towns[:i] {
							works(t, w, a, b)
						}
					}
				})
			})
		}
	}
}

// A node has given up an actor, with a connection whose end its peer has not noticed. Its next
// actor for the same peer gets another connection immediately: its dial is the later one.
func TestAnotherActorDials(t *testing.T) {
	actortest.Run(t, onLoops(2), func(w *actortest.World) {
		a, b := newTown(w, w.Runtime(), 1), newTown(w, w.Host("mem1", "10.0.0.2"), 2)
		for range 5 { // so that the numbers of the first actor's dials are the higher ones
			k := a.tie(2, "10.0.0.2:1")
			w.Advance(time.Second)
			_ = w.System().Root.StopFuture(k.pid).Wait()
			w.Wait()
			k.closed = &reconnect.Closed{}
		}
		k := a.tie(2, at(2))
		w.Advance(time.Second)
		works(t, w, a, b)
		w.Silence("10.0.0.1")
		_ = w.System().Root.StopFuture(k.pid).Wait()
		k.closed = &reconnect.Closed{}
		w.Advance(time.Second)
		w.Unsilence("10.0.0.1")
		if b.ups() != 1 {
			t.Fatal("the peer has noticed")
		}
		a.tie(2, at(2))
		w.Advance(100 * time.Millisecond)
		works(t, w, a, b)
	})
}

// Invented nodes get as many actors as are allowed, and one address no more than are left for all
// others. A refused node gets the reason, and gets an actor when there is a place.
func TestStrangersAreBounded(t *testing.T) {
	actortest.Run(t, onLoops(2), func(w *actortest.World) {
		a := newTown(w, w.Runtime(), 1, reconnect.PeersConfig{Strangers: 32})
		refused := func(k *tie) (n int) {
			k.read(w, func() {
				for _, d := range k.downs {
					if !errors.Is(d.Err, reconnect.ErrTooManyNodes) {
						t.Errorf("an attempt has failed: %v", d.Err)
					}
				}
				n = len(k.downs)
			})
			return n
		}
		var invented []*tie
		rt := w.Host("mem1", "10.0.0.2")
		for id := range uint64(64) {
			k := &tie{diary: newDiary(w, rt)}
			p := reconnect.NewPeers(reconnect.PeersConfig{Node: 100 + id})
			k.link = reconnect.Spawn(rt, k.pid, reconnect.Config{
				Dial: rdma.Dial{Addr: at(1)}, Peers: p, Peer: 1, Backoff: reconnect.Backoff{First: time.Second, Most: 2 * time.Second},
			})
			invented = append(invented, k)
		}
		w.Advance(2 * time.Second)
		without := 0
		for _, k := range invented {
			if refused(k) > 0 {
				without++
			}
		}
		// has <= 32-has-2
		if up := a.ups(); up != 16 || without != 48 {
			t.Errorf("of 64 nodes at one address %d are connected, and %d were refused", up, without)
		}
		b := newTown(w, w.Host("mem2", "10.0.0.3"), 3)
		b.tie(1, at(1))
		w.Advance(time.Second)
		if b.ups() != 1 {
			t.Fatal("a node from elsewhere finds no place")
		}
		for _, k := range invented[:32] {
			_ = w.System().Root.StopFuture(k.pid).Wait()
		}
		w.Advance(time.Minute)
		if up := a.ups(); up != 16 || a.asked != 32 {
			t.Errorf("when places are free %d are connected, and %d had one", up, a.asked)
		}
		// a node that this side has named itself needs no place
		c := newTown(w, w.Host("mem3", "10.0.0.4"), 4)
		a.tie(4, at(4))
		w.Advance(time.Second)
		works(t, w, a, c)
	})
}

// A node that Unknown does not want hears so. If Unknown does not return, that costs the request.
func TestUnknownRefuses(t *testing.T) {
	for name, refuse := range map[string]func(){
		"nobody": func() {}, "panic": func() { panic("for the test") },
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, onLoops(2), func(w *actortest.World) {
				var a *town
				asked := 0
				a = newTown(w, w.Runtime(), 1, reconnect.PeersConfig{Strangers: 1, Unknown: func(s reconnect.Stranger) *actor.PID {
					if string(s.PrivateData) != "hi" || s.Node != 2 || s.Incarnation != 1 || s.From.Addr().String() != "10.0.0.2" {
						t.Errorf("asked about %+v", s)
					}
					if asked++; asked <= 3 {
						refuse()
						return nil
					}
					return a.tie(s.Node, "").link
				}})
				b := newTown(w, w.Host("mem1", "10.0.0.2"), 2)
				for range 3 {
					if name == "panic" {
						w.ExpectPanic("for the test")
					}
				}
				k := &tie{diary: newDiary(w, b.rt)}
				b.links[1] = k
				k.link = reconnect.Spawn(b.rt, k.pid, reconnect.Config{Dial: rdma.Dial{Addr: at(1), PrivateData: []byte("hi")}, Peers: b.peers, Peer: 1})
				w.Advance(10 * time.Second)
				k.read(w, func() {
					if len(k.downs) != 3 || name == "nobody" && !errors.Is(k.downs[0].Err, reconnect.ErrUnknownNode) {
						t.Errorf("%d attempts have failed: %+v", len(k.downs), k.downs)
					}
				})
				works(t, w, a, b)
			})
		})
	}
}
