package devcerts

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// parsed returns the certificate of a pair.
func parsed(t *testing.T, p Pair) *x509.Certificate {
	t.Helper()
	return must(parseCert(p.Cert))(t)
}

func pool(t *testing.T, a *Authority) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.Pair.Cert) {
		t.Fatal("the authority's certificate is no PEM")
	}
	return roots
}

func TestWhatIsSigned(t *testing.T) {
	a := must(New())(t)
	server := parsed(t, must(a.Server("host", "10.0.0.1", "fe80::1"))(t))
	client := parsed(t, must(a.Client("ann"))(t))
	for _, c := range []*x509.Certificate{a.cert, server, client} {
		if !slices.Equal(c.Subject.Organization, []string{Organization}) || !strings.Contains(c.Subject.String(), "development") {
			t.Errorf("the subject %v does not say what it is for", c.Subject)
		}
		if c.NotBefore.After(time.Now()) || time.Until(c.NotAfter) > lasts || time.Until(c.NotAfter) < lasts-24*time.Hour {
			t.Errorf("%v is valid from %v to %v", c.Subject, c.NotBefore, c.NotAfter)
		}
	}
	roots := pool(t, a)
	for name, good := range map[string]bool{"host": true, "10.0.0.1": true, "fe80::1": true, "other": false, "10.0.0.2": false} {
		_, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		if (err == nil) != good {
			t.Errorf("as the server %s: %v", name, err)
		}
	}
	use := func(u x509.ExtKeyUsage) x509.VerifyOptions {
		return x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{u}}
	}
	for name, c := range map[string]struct {
		cert *x509.Certificate
		use  x509.ExtKeyUsage
		good bool
	}{
		"a server connects":    {server, x509.ExtKeyUsageClientAuth, true},
		"a client connects":    {client, x509.ExtKeyUsageClientAuth, true},
		"a client is a server": {client, x509.ExtKeyUsageServerAuth, false},
	} {
		if _, err := c.cert.Verify(use(c.use)); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if client.IsCA || server.IsCA || server.CheckSignatureFrom(client) == nil {
		t.Error("what is signed can sign")
	}
	if _, err := a.Server(); err == nil {
		t.Error("a server without a name")
	}
}

// TestLoad: an authority is the same one later, and nothing else is one.
func TestLoad(t *testing.T) {
	a, other := must(New())(t), must(New())(t)
	again := must(Load(Pair{slices.Clone(a.Pair.Cert), slices.Clone(a.Pair.Key)}))(t)
	again.cert.NotAfter = time.Now().Add(time.Hour)
	late := parsed(t, must(again.Client("late"))(t))
	if _, err := late.Verify(x509.VerifyOptions{Roots: pool(t, a), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("what it has signed later: %v", err)
	}
	if late.NotAfter.After(again.cert.NotAfter) {
		t.Errorf("it is valid to %v, and the authority to %v", late.NotAfter, again.cert.NotAfter)
	}
	client := must(a.Client("ann"))(t)
	broken := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})
	for name, p := range map[string]Pair{
		"nothing": {}, "no key": {Cert: a.Pair.Cert}, "a broken key": {a.Pair.Cert, broken},
		"another's key": {a.Pair.Cert, other.Pair.Key}, "a client": client,
	} {
		if _, err := Load(p); err == nil {
			t.Errorf("%s is an authority", name)
		}
	}
}

// TestHandshake: crypto/tls takes them, on both sides.
func TestHandshake(t *testing.T) {
	a := must(New())(t)
	load := func(p Pair) []tls.Certificate { return []tls.Certificate{must(tls.X509KeyPair(p.Cert, p.Key))(t)} }
	roots := pool(t, a)
	near, far := net.Pipe()
	server := tls.Server(far, &tls.Config{
		Certificates: load(must(a.Server("host"))(t)), ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	})
	client := tls.Client(near, &tls.Config{
		Certificates: load(must(a.Client("ann"))(t)), RootCAs: roots, ServerName: "host", MinVersion: tls.VersionTLS13,
	})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Error("the client:", err)
	}
	if err := <-done; err != nil {
		t.Error("the server:", err)
	}
	if got := server.ConnectionState().PeerCertificates[0].Subject.CommonName; got != "ann" {
		t.Errorf("the client is %q", got)
	}
	_ = near.Close()
	_ = far.Close()
}
