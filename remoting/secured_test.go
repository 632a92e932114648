package remoting_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/certtest"
	"github.com/rdmactor/rdmactor/internal/securityflags"
	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
	"github.com/rdmactor/rdmactor/remoting"
)

// securityVariable says how the processes of a test are secured: flags as programs have them.
const securityVariable = "REMOTING_SECURITY"

// modes are the flags of the nodes of a test, which all have the same key, or certificate.
func modes(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"PSK": {"--key", securitytest.KeyFile(t, securitytest.Key(t, "nodes"))},
		"TLS": securitytest.NewCerts(t).Server("node"),
	}
}

// secureHere secures the nodes that are made from now on.
func secureHere(args []string) (closed func(), err error) {
	var f securityflags.Flags
	set := flag.NewFlagSet("", flag.ContinueOnError)
	f.Define(set)
	if err := set.Parse(args); err != nil {
		return func() {}, err
	}
	here.security, closed, err = f.Open(func(string) {})
	return closed, err
}

// secureProcess is secureHere for a test's process, as its environment says.
func secureProcess() (closed func(), err error) {
	text := os.Getenv(securityVariable)
	if text == "" {
		return func() {}, nil
	}
	var args []string
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		return func() {}, err
	}
	return secureHere(args)
}

// inMode secures the test's nodes, those in processes of their own, too.
func inMode(t *testing.T, args []string) {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(securityVariable, string(text))
	was := here
	closed, err := secureHere(args)
	t.Cleanup(func() {
		closed()
		here = was
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The nodes of a test in a mode are secured, in this process and in others.
func TestModes(t *testing.T) {
	for mode, args := range modes(t) {
		t.Run(mode, func(t *testing.T) {
			inMode(t, args)
			want := map[string]string{"PSK": "nodes", "TLS": "localhost"}[mode]
			var asked atomic.Int32
			proved := func(p remoting.Peer) error {
				if asked.Add(1); p.Identity != want {
					t.Errorf("%+v, want the identity %q", p, want)
				}
				return nil
			}
			a, c := start(t, remoting.Config{}), run(t, freeName(t))
			b := start(t, remoting.Config{
				Expose: everything, Admit: proved, Allow: func(p remoting.Peer, _ remoting.Access, _ string) error { return proved(p) },
			})
			b.spawn("echo", echo)
			allowed(t, a, b.pid("echo"))
			allowed(t, a, c.pid("echo"))
			for _, p := range append(a.Peers(), b.Peers()...) {
				_ = proved(p.Peer)
			}
			if n := asked.Load(); n != 5 {
				t.Errorf("%d peers were looked at, want 5", n)
			}
		})
	}
}

// What nodes do for each other when nothing is secured they do in the modes, too.
func TestSecuredNodes(t *testing.T) {
	for mode, args := range modes(t) {
		for _, test := range []struct {
			name string
			f    func(*testing.T)
		}{
			{"requests", TestRequestFuture},
			{"sender and header", TestSenderAndHeader},
			{"own senders", TestOwnSenders},
			{"forwarded answers", TestManyForwardedAnswers},
			{"what is exposed", TestExposeReach},
			{"spawning", TestSpawn},
			{"watch", TestWatch},
			{"stop and poison", TestStopAndPoison},
			{"nobody", TestNobody},
			{"both begin", TestBothBegin},
			{"order", TestOrderOfActors},
			{"large messages", TestLarge},
			{"too large", TestTooLarge},
			{"large waits its turn", TestLargeWaitsItsTurn},
			{"room for watches", TestBurstOfWatches},
			{"overflow", TestOverflowBlock},
			{"slow actor", TestShutdownBesideSlowActor},
			{"frozen peer", TestFrozenPeer},
			{"admission", TestAdmit},
			{"block list", TestReadmit},
			{"two processes", TestTwoProcesses},
			{"kill", TestKill},
			{"restart", TestRestart},
			{"shutdown in the middle", TestShutdownInTheMiddle},
			{"shutdown sends", TestShutdownSends},
		} {
			t.Run(mode+" "+test.name, func(t *testing.T) {
				inMode(t, args)
				test.f(t)
			})
		}
	}
}

// Three nodes have a certificate each. Each reaches each, knows who it is, and rejects who claims
// to be another one.
func TestNodesHaveCertificates(t *testing.T) {
	ca := certtest.New(t)
	var names sync.Map // of the nodes, by their identities
	of := func(letter string) *rdma.Security {
		return &rdma.Security{Mode: rdma.TLS, TLS: &tls.Config{
			Certificates: []tls.Certificate{ca.Of(t, identityOf(letter), here.host)},
			RootCAs:      ca.Pool(), ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		}}
	}
	nodes := make(map[string]*node)
	for _, letter := range []string{"a", "b", "c"} {
		n := start(t, remoting.Config{
			ID: rdma.IDConfig{Security: of(letter)}, Expose: everything,
			NodeOf: func(identity string) string {
				name, _ := names.Load(identity)
				s, _ := name.(string)
				return s
			},
		})
		n.spawn("echo", echo)
		names.Store(identityOf(letter), n.Name())
		nodes[letter] = n
	}
	for _, a := range nodes {
		for letter, b := range nodes {
			if a == b {
				continue
			}
			allowed(t, a, b.pid("echo"))
			if i := a.info(b); i.Peer.Identity != identityOf(letter) {
				t.Errorf("%s has of %s %+v", a.Name(), letter, i.Peer)
			}
		}
	}
	a, b := nodes["a"], nodes["b"]
	for _, as := range []string{a.Name(), "10.1.1.1:7"} {
		if err := impostorWith(t, b, as, of("c")).refused(); !errors.Is(err, reconnect.ErrWrongIdentity) {
			t.Errorf("as %s: %v", as, err)
		}
	}
	if i := b.info(a); !i.Connected || len(disconnections(b)) > 0 {
		t.Errorf("it was taken away: %+v, %v", i, disconnections(b))
	}
}

func identityOf(letter string) string { return "spiffe://test/" + letter }
