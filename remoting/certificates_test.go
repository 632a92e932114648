package remoting_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/certtest"
	"github.com/rdmactor/rdmactor/remoting"
)

// certified is nodes whose certificates one authority has signed.
type certified struct {
	t         *testing.T
	authority *certtest.Authority
	mu        sync.Mutex
	names     map[string]string   // of the nodes, by their identities
	admitted  map[string][]string // what Admit has seen, by the node that was asked
}

// identityOf returns the URI in a node's certificate.
func identityOf(letter string) string { return "spiffe://test/" + letter }

// start starts a node with a certificate of its authority's. It trusts w's authority.
func (w *certified) start(letter string, signs *certtest.Authority) *node {
	w.t.Helper()
	n := start(w.t, remoting.Config{
		Expose: everything,
		ID: rdma.IDConfig{Security: &rdma.Security{Mode: rdma.TLS, TLS: &tls.Config{
			Certificates: []tls.Certificate{signs.Of(w.t, identityOf(letter), here.host)}, RootCAs: w.authority.Pool(),
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: w.authority.Pool(),
		}}},
		NodeOf: func(identity string) string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.names[identity]
		},
		Admit: func(p remoting.Peer) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.admitted[letter] = append(w.admitted[letter], p.Identity)
			if p.Identity == identityOf("banned") {
				return fmt.Errorf("%s is banned", p.Identity)
			}
			return nil
		},
	})
	n.spawn("echo", echo)
	w.mu.Lock()
	defer w.mu.Unlock()
	if signs == w.authority {
		w.names[identityOf(letter)] = n.Name()
	}
	return n
}

// saw reports whether Admit of a node was asked about an identity.
func (w *certified) saw(letter, identity string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.admitted[letter] {
		if i == identity {
			return true
		}
	}
	return false
}

// Nodes have certificates. They exchange messages, and Admit and Peers have the identities of their
// certificates. A node whose certificate another authority has signed is refused, whichever side
// dials, before Admit is asked; and so is one that Admit does not want.
func TestCertificates(t *testing.T) {
	w := &certified{t: t, authority: certtest.New(t), names: make(map[string]string), admitted: make(map[string][]string)}
	a, b := w.start("a", w.authority), w.start("b", w.authority)
	for _, pair := range [][2]*node{{a, b}, {b, a}} {
		got, err := pair[0].ask(pair[1].pid("echo"), text("hi"))
		if err != nil || got.(*wrapperspb.StringValue).Value != "hi" {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if !w.saw("a", identityOf("b")) || !w.saw("b", identityOf("a")) {
		t.Errorf("Admit has seen %v", w.admitted)
	}
	if i := a.info(b); i.Peer.Identity != identityOf("b") {
		t.Errorf("a has of b %+v", i.Peer)
	}
	if i := b.info(a); i.Peer.Identity != identityOf("a") {
		t.Errorf("b has of a %+v", i.Peer)
	}

	foreign := w.start("a", certtest.New(t)) // it claims a's identity
	for _, pair := range [][2]*node{{foreign, b}, {b, foreign}} {
		if got, err := pair[0].ask(pair[1].pid("echo"), text("hi")); err == nil {
			t.Fatalf("answered with %v", got)
		}
		e := await(t, pair[0], func(e *remoting.NotAdmitted) bool { return e.Peer.Name == pair[1].Name() })
		if _, ok := errors.AsType[*rdma.HandshakeError](e.Err); !ok {
			t.Errorf("%v", e)
		}
	}
	banned := w.start("banned", w.authority)
	if got, err := banned.ask(b.pid("echo"), text("hi")); err == nil {
		t.Fatalf("answered with %v", got)
	}
	await(t, b, func(e *remoting.NotAdmitted) bool {
		return errors.Is(e.Err, remoting.ErrBlocked) && e.Peer.Identity == identityOf("banned")
	})

	// all that time the two have kept their connection
	for _, e := range disconnections(b) {
		t.Errorf("%+v", e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.admitted["b"]); n < 2 || w.admitted["b"][0] != identityOf("a") || w.admitted["b"][n-1] != identityOf("banned") {
		t.Errorf("Admit of b has seen %v", w.admitted["b"])
	}
}

// A node with a certificate claims the name of another one.
func TestCertificateOfAnotherNode(t *testing.T) {
	w := &certified{t: t, authority: certtest.New(t), names: make(map[string]string), admitted: make(map[string][]string)}
	a, b := w.start("a", w.authority), w.start("b", w.authority)
	if _, err := a.ask(b.pid("echo"), text("hi")); err != nil {
		t.Fatal(err)
	}
	host := open(t, remoting.Config{}, 1)
	t.Cleanup(host.end)
	s := meetWith(t, host, b, a.Name(), rdma.IDConfig{MaxMessage: 4 << 20, Security: &rdma.Security{Mode: rdma.TLS, TLS: &tls.Config{
		Certificates: []tls.Certificate{w.authority.Of(t, identityOf("c"), here.host)}, RootCAs: w.authority.Pool(),
	}}})
	if err := s.refused(); !errors.Is(err, reconnect.ErrWrongIdentity) {
		t.Error(err)
	}
	if i := b.info(a); !i.Connected || w.saw("b", identityOf("c")) {
		t.Errorf("%+v; Admit has seen %v", i, w.admitted["b"])
	}
	for _, e := range disconnections(b) {
		t.Errorf("its connection was taken away: %+v", e)
	}
}
