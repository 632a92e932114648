package remoting_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/internal/certtest"
	"github.com/rdmactor/rdmactor/remoting"
)

// simulated is a node of a simulated machine, whose actor "echo" answers. nil: the time is over.
func simulated(s *actortest.Sim, p *actortest.Process, addr string, security *rdma.Security) *remoting.Node {
	rt, err := p.Open(rdma.Config{Security: security})
	var n *remoting.Node
	if err == nil {
		n, err = remoting.Start(p.System(), rt, remoting.Config{Name: addr, Expose: everything})
	}
	if err == nil {
		_, err = p.System().Root.SpawnNamed(actor.PropsFromFunc(echo, rt.OnLoop()), "echo")
	}
	if err != nil && p.Context().Err() == nil {
		s.Fail("%s: %v", p.Name(), err)
	}
	return n
}

// simulatedAsk asks the actor "echo" of a node.
func simulatedAsk(p *actortest.Process, addr string) error {
	f := p.System().Root.RequestFuture(actor.NewPID(addr, "echo"), text("?"), 3*time.Second)
	_, err := remoting.Result(f)
	p.Sleep(0) // a future does not know the simulation, and so does not wait for its turn
	return err
}

// Nodes reach each other again when their devices, which were removed, are back: they listen again.
func TestListensAgain(t *testing.T) {
	reachAgain(t, actortest.Simulation{Seeds: 20, Faults: actortest.Device}, nil)
}

// Nodes reach each other again when they were cut off from each other, in every mode.
func TestConnectsAgain(t *testing.T) {
	faults := actortest.Cut | actortest.Reset | actortest.Freeze | actortest.Delay
	for mode, security := range simulatedModes(t) {
		t.Run(mode, func(t *testing.T) {
			reachAgain(t, actortest.Simulation{Seeds: 10, Faults: faults}, security)
		})
	}
}

// simulatedModes is the security of the nodes of a simulation, which all have the same key, or
// certificate.
func simulatedModes(t *testing.T) map[string]*rdma.Security {
	t.Helper()
	ca := certtest.New(t)
	both := ca.IssueFixed(t, &x509.Certificate{
		DNSNames: []string{"nodes"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1), net.IPv4(10, 0, 0, 2)},
	}, time.Hour)
	return map[string]*rdma.Security{
		"insecure": {Mode: rdma.Insecure},
		"PSK":      {Mode: rdma.PSK, Keys: ringOf(t, keyOf("a", "b"))},
		"TLS": {Mode: rdma.TLS, TLS: &tls.Config{
			Certificates: []tls.Certificate{both}, RootCAs: ca.Pool(), ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
			// a simulation has another clock than the certificates
			Time: func() time.Time { return ca.Cert.NotAfter.Add(-time.Minute) },
		}},
	}
}

// reachAgain has two nodes ask each other all the time, and wants both to be answered when what
// goes wrong is over.
func reachAgain(t *testing.T, cfg actortest.Simulation, security *rdma.Security) {
	t.Helper()
	actortest.Simulate(t, cfg, func(s *actortest.Sim) {
		addrs := []string{"10.0.0.1:7471", "10.0.0.2:7471"}
		var answers, before [2]int
		over := false // nothing goes wrong any more
		for i, addr := range addrs {
			s.Machine([]string{"m1", "m2"}[i], []string{"10.0.0.1", "10.0.0.2"}[i], func(p *actortest.Process) {
				if simulated(s, p, addr, security) == nil {
					return
				}
				for {
					if simulatedAsk(p, addrs[1-i]) == nil {
						answers[i]++
					}
					p.Sleep(time.Second)
				}
			})
		}
		s.Done(func() bool {
			if !over {
				over, before = true, answers
			}
			return answers[0] > before[0] && answers[1] > before[1]
		})
	})
}
