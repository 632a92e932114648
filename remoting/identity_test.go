package remoting_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// network is nodes of which each two have a key.
type network struct {
	t     *testing.T
	mu    sync.Mutex
	names map[string]string // of the nodes, by their letters
	keys  map[string]*rdma.Keyring
}

// keyOf returns the key that two nodes have. Its identity is their letters, in order.
func keyOf(a, b string) rdma.Credential {
	if a > b {
		a, b = b, a
	}
	c := rdma.Credential{Identity: a + b}
	copy(c.Key[:], a+b+" is not a secret in a test")
	return c
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, names: make(map[string]string), keys: make(map[string]*rdma.Keyring)}
}

// config returns the configuration of a node that has a key with each of the others.
func (w *network) config(letter string, others ...string) remoting.Config {
	k := new(rdma.Keyring)
	var all []rdma.Credential
	for _, o := range others {
		all = append(all, keyOf(letter, o))
	}
	if err := k.Accept(all...); err != nil {
		w.t.Fatal(err)
	}
	w.keys[letter] = k
	return remoting.Config{
		Expose: everything, ID: rdma.IDConfig{Security: &rdma.Security{Mode: rdma.PSK, Keys: k}},
		NodeOf: func(identity string) string {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, o := range others {
				if keyOf(letter, o).Identity == identity {
					return w.names[o]
				}
			}
			return ""
		},
	}
}

// named registers the address of a node, and makes the others connect to it with the key that they
// share.
func (w *network) named(letter, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[letter] = name
	for o, k := range w.keys {
		if err := k.UseFor(name, keyOf(letter, o)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Three nodes have a key for each two of them. Each reaches each, and knows who it is. Then one
// claims to be another one, which is connected or not: it is rejected, and changes nothing.
func TestNodesHaveIdentities(t *testing.T) {
	w := newNetwork(t)
	nodes := make(map[string]*node)
	for letter, others := range map[string][]string{"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}} {
		nodes[letter] = start(t, w.config(letter, others...))
		nodes[letter].spawn("echo", echo)
	}
	for letter, n := range nodes {
		w.named(letter, n.Name())
	}
	for la, a := range nodes {
		for lb, b := range nodes {
			if la == lb {
				continue
			}
			if got, err := a.ask(b.pid("echo"), text("hi")); err != nil || got.(*wrapperspb.StringValue).Value != "hi" {
				t.Fatalf("%s asks %s: %v, %v", la, lb, got, err)
			}
			if i := a.info(b); i.Peer.Identity != keyOf(la, lb).Identity {
				t.Errorf("%s has of %s %+v", la, lb, i.Peer)
			}
		}
	}
	a, b := nodes["a"], nodes["b"]
	for _, as := range []string{a.Name(), "10.1.1.1:7"} {
		s := impostor(t, b, as, keyOf("b", "c"))
		if err := s.refused(); !errors.Is(err, reconnect.ErrWrongIdentity) {
			t.Errorf("as %s: %v", as, err)
		}
	}
	if i := b.info(a); !i.Connected {
		t.Errorf("it was taken away: %+v", i)
	}
	for _, e := range disconnections(b) {
		t.Errorf("%+v", e)
	}
}

// impostor connects to a node with a key, and claims a name.
func impostor(t *testing.T, to *node, name string, c rdma.Credential) *stranger {
	t.Helper()
	k := new(rdma.Keyring)
	if err := k.Use(c); err != nil {
		t.Fatal(err)
	}
	host := open(t, remoting.Config{}, 1)
	t.Cleanup(host.end)
	return meetWith(t, host, to, name, rdma.IDConfig{MaxMessage: 4 << 20, Security: &rdma.Security{Mode: rdma.PSK, Keys: k}})
}

// refused returns why a stranger was not connected.
func (s *stranger) refused() error {
	s.t.Helper()
	select {
	case err := <-s.down:
		return err
	case <-s.up:
		s.t.Fatal("it is connected")
	case <-time.After(soon):
		s.t.Fatal("it was neither connected nor refused")
	}
	return nil
}

func disconnections(n *node) (all []any) {
	n.events.mu.Lock()
	defer n.events.mu.Unlock()
	for _, e := range n.events.list {
		if d, ok := e.(*remoting.Disconnected); ok {
			all = append(all, d)
		}
	}
	return all
}

// The node's id in the request fits the identity, and the name in the hello does not: an id is 64
// bits of a hash. Here the identity has become another node's in between, because there are no two
// such names at hand.
func TestHelloNamesAnother(t *testing.T) {
	w := newNetwork(t)
	cfg := w.config("b", "c")
	var asked atomic.Int32
	cfg.NodeOf = func(string) string { return "10.1.1.1:" + strconv.Itoa(int(asked.Add(1))) }
	b := start(t, cfg)
	s := impostor(t, b, "10.1.1.1:1", keyOf("b", "c"))
	s.connect().hello()
	s.ends(frame.GoodbyeName)
}

// NodeOf panics: the peer is refused, and the node goes on.
func TestNodeOfPanics(t *testing.T) {
	w := newNetwork(t)
	cfg := w.config("b", "c")
	cfg.NodeOf = func(string) string { panic("NodeOf") }
	b := start(t, cfg)
	s := impostor(t, b, "10.1.1.1:7", keyOf("b", "c"))
	if err := s.refused(); !errors.Is(err, reconnect.ErrWrongIdentity) {
		t.Error(err)
	}
}

// A peer forwards a message in the name of a third node: that is refused where the config requires
// it. The peer's own, and answers that come back the way they went, are not.
func TestOwnSenders(t *testing.T) {
	a := start(t, remoting.Config{Expose: everything})
	b := start(t, remoting.Config{Expose: everything})
	c := start(t, remoting.Config{Expose: everything, OwnSenders: true})
	c.spawn("echo", echo)
	_, in := c.probe("probe")
	b.spawn("router", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.RequestWithCustomSender(c.pid("probe"), m, a.pid("who"))
			ctx.RequestWithCustomSender(c.pid("probe"), text("own"), b.pid("router"))
		}
	})
	a.sys.Root.Send(b.pid("router"), text("forged"))
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "own" {
		t.Errorf("%v came", m)
	}
	eventually(t, "it was not refused", func() bool { return c.info(b).Counts.Refused == 1 })
	if got, err := b.ask(c.pid("echo"), text("hi")); err != nil || got.(*wrapperspb.StringValue).Value != "hi" {
		t.Errorf("%v, %v", got, err)
	}
}
