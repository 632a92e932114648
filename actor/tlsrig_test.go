package actor

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

// certs has the certificates of a test in TLS mode: an authority, and both sides' certificates from
// it.
type certs struct {
	*certtest.Authority
	server, client *Security // the listening side's and the connecting side's: mTLS
}

// The identities that certs are for.
const (
	aliceID  = "spiffe://test/alice"
	serverID = "spiffe://test/server"
)

func newCerts(tb testing.TB) *certs {
	tb.Helper()
	c := &certs{Authority: certtest.New(tb)}
	c.server = &Security{Mode: TLS, TLS: &tls.Config{
		Certificates: []tls.Certificate{c.Of(tb, serverID, there)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.Pool(),
	}}
	c.client = &Security{Mode: TLS, TLS: &tls.Config{
		Certificates: []tls.Certificate{c.Of(tb, aliceID, here)}, RootCAs: c.Pool(),
	}}
	return c
}

// dialTLS listens there, and dials from here.
func (w *world) dialTLS(server, client *Security) (s, c *probe, id *actor.PID) {
	w.Helper()
	s, c = w.farProbe(), w.probe()
	w.listen(s, IDConfig{Security: server})
	id = w.rt.CreateID(c.pid, IDConfig{Security: client})
	c.send(id, &Dial{Addr: there + ":7471", PrivateData: []byte("hello")})
	return s, c, id
}

// mtls returns a Security for both sides, which have the same certificate: alice's.
func mtls(tb testing.TB) *Security {
	tb.Helper()
	a := certtest.New(tb)
	mine := a.Issue(tb, &x509.Certificate{
		DNSNames: []string{"alice"}, IPAddresses: []net.IP{net.ParseIP(here), net.ParseIP(there), net.ParseIP("127.0.0.1")},
	}, time.Hour)
	return &Security{Mode: TLS, TLS: &tls.Config{
		Certificates: []tls.Certificate{mine}, RootCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
	}}
}

// mode makes what both sides of a test's connections have. In both modes the identity is alice.
type mode func(tb testing.TB) IDConfig

// eachMode runs test once for each mode. made makes what both sides have.
func eachMode(t *testing.T, test func(t *testing.T, made func(testing.TB) *Security)) {
	t.Helper()
	for name, made := range map[string]func(testing.TB) *Security{"PSK": psk, "TLS": mtls} {
		t.Run(name, func(t *testing.T) { test(t, made) })
	}
}

// onSecured runs test once for each mode and flavor.
func onSecured(t *testing.T, test func(w *world, secured mode), cfg ...Config) {
	t.Helper()
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		onFlavors(t, func(w *world) {
			sec := made(w)
			test(w, func(testing.TB) IDConfig {
				own := *sec
				return IDConfig{Security: &own}
			})
		}, cfg...)
	})
}
