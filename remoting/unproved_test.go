package remoting_test

import (
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting"
)

func ringOf(t *testing.T, c rdma.Credential) *rdma.Keyring {
	t.Helper()
	k := new(rdma.Keyring)
	if err := errors.Join(k.Use(c), k.Accept(c)); err != nil {
		t.Fatal(err)
	}
	return k
}

func secured(k *rdma.Keyring) rdma.IDConfig {
	return rdma.IDConfig{Security: &rdma.Security{Mode: rdma.PSK, Keys: k}}
}

// notAdmitted counts the events. One that is published in order comes behind all of them.
func notAdmitted(n *node) (all []*remoting.NotAdmitted) {
	n.events.mu.Lock()
	defer n.events.mu.Unlock()
	for _, e := range n.events.list {
		if no, ok := e.(*remoting.NotAdmitted); ok {
			all = append(all, no)
		}
	}
	return all
}

// refusedBy returns how many handshakes a node has refused.
func refusedBy(t *testing.T, n *node) (c uint64) {
	t.Helper()
	for _, i := range n.rt.Inspect() {
		if i.Listener != nil {
			c += i.Listener.Refused.Unauthenticated
		}
	}
	return c
}

// A node whose peer has another key hears of it: once, however often it dials, until the two have
// been connected.
func TestAnotherKey(t *testing.T) {
	ours, theirs := keyOf("a", "b"), keyOf("b", "c")
	ka := ringOf(t, theirs)
	a := start(t, remoting.Config{Expose: everything, ID: secured(ka)})
	b := start(t, remoting.Config{Expose: everything, ID: secured(ringOf(t, ours))})
	b.spawn("echo", echo)
	for refusedBy(t, b) < 4 {
		if _, err := a.ask(b.pid("echo"), text("hi")); err == nil {
			t.Fatal("it is connected")
		}
		time.Sleep(10 * time.Millisecond)
	}
	e := await(t, a, anyEvent[*remoting.NotAdmitted])
	if _, ok := errors.AsType[*rdma.HandshakeError](e.Err); !ok || e.Peer.Name != b.Name() {
		t.Errorf("%v", e)
	}

	if err := errors.Join(ka.Use(ours), ka.Accept(ours)); err != nil {
		t.Fatal(err)
	}
	for { // a dial of before may still be on its way
		if _, err := a.ask(b.pid("echo"), text("hi")); err == nil {
			break
		}
	}
	await(t, a, anyEvent[*remoting.Connected])
	if all := notAdmitted(a); len(all) != 1 {
		t.Errorf("%d events", len(all))
	}
}

// The dialled peer has a valid key, but is not the node.
func TestAnotherNodesKey(t *testing.T) {
	c := keyOf("a", "b")
	cfg := remoting.Config{Expose: everything, ID: secured(ringOf(t, c)), NodeOf: func(string) string { return "192.0.2.9:7" }}
	a := start(t, cfg)
	b := start(t, remoting.Config{Expose: everything, ID: secured(ringOf(t, c))})
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := a.ask(b.pid("echo"), text("hi")); err == nil {
			t.Fatal("it is connected")
		}
	}
	if e := await(t, a, anyEvent[*remoting.NotAdmitted]); !errors.Is(e.Err, reconnect.ErrWrongIdentity) || e.Peer.Name != b.Name() {
		t.Errorf("%v", e)
	}
	if all := notAdmitted(a); len(all) != 1 {
		t.Errorf("%d events", len(all))
	}
}
