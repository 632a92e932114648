package secure

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

// usersCode has do be called by a server's configuration.
var usersCode = map[string]func(c *tls.Config, do func()){
	"VerifyConnection": func(c *tls.Config, do func()) {
		c.VerifyConnection = func(tls.ConnectionState) error { do(); return nil }
	},
	"VerifyPeerCertificate": func(c *tls.Config, do func()) {
		c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { do(); return nil }
	},
	"GetCertificate": func(c *tls.Config, do func()) {
		c.Certificates = nil
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { do(); return nil, nil }
	},
	"GetConfigForClient": func(c *tls.Config, do func()) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { do(); return nil, nil }
	},
	"the private key": func(c *tls.Config, do func()) {
		c.Certificates[0].PrivateKey = badKey{c.Certificates[0].PrivateKey.(crypto.Signer), do, func() {}}
	},
}

// TestTLSUsersCode: what panics, ends its goroutine or does not return, ends that handshake only.
func TestTLSUsersCode(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	release := make(chan struct{})
	defer close(release)
	var cancel context.CancelCauseFunc
	misbehave := map[string]func(){
		"panicked": func() { panic("mine") }, "not returned": runtime.Goexit,
		"given up": func() { cancel(errors.New("given up")); <-release },
	}
	for why, do := range misbehave {
		for what, change := range usersCode {
			theirs := server.Clone()
			theirs.Certificates = slices.Clone(server.Certificates)
			change(theirs, do)
			var ctx context.Context
			ctx, cancel = context.WithCancelCause(t.Context())
			s := &sides{}
			var err error
			if s.client, err = NewTLSClient(t.Context(), client, tlsPeer); err != nil {
				t.Fatal(err)
			}
			if s.server, err = NewTLSServer(ctx, theirs, tlsPeer); err == nil {
				_, err = s.run(nil)
				s.server.Close()
			}
			wantRefused(t, what, err)
			if err == nil || !strings.Contains(err.Error(), why) || why != "given up" && !strings.Contains(err.Error(), what) {
				t.Errorf("%s has %s: %v", what, why, err)
			}
			s.client.Close()
			cancel(nil)
		}
	}
}

// TestTLSRareCode: the same for code that is called before a handshake has begun, and for code
// that needs more than the usual configurations to be called.
func TestTLSRareCode(t *testing.T) {
	_, server := configs(t, certtest.New(t))
	bad := func() { panic("mine") }
	server.Certificates[0].PrivateKey = badKey{server.Certificates[0].PrivateKey.(crypto.Signer), func() {}, bad}
	if s, err := NewTLSServer(t.Context(), server, tlsPeer); err == nil {
		s.Close()
		t.Error("a key without a public key is taken")
	} else if !strings.Contains(err.Error(), "the private key has panicked") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c, err := (&users{ctx, cancel, nil}).prepareConfig(&tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { bad(); return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetClientCertificate(nil); err == nil || !strings.Contains(err.Error(), "has panicked") {
		t.Error(err)
	}
}

// badKey calls the test's code when it signs, and when it is asked for its public key.
type badKey struct {
	key          crypto.Signer
	signs, shows func()
}

func (k badKey) Public() crypto.PublicKey {
	k.shows()
	return k.key.Public()
}

func (k badKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.signs()
	return k.key.Sign(random, digest, opts)
}

// TestTLSPerClient: what GetConfigForClient returns is no way around our protocol.
func TestTLSPerClient(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	other := server.Clone()
	other.NextProtos = []string{"h2"}
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return other, nil }
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(nil); ce != nil || se != nil || !s.server.Done() {
		t.Error(ce, se)
	}
	other.MaxVersion = tls.VersionTLS12
	s = begin(t, client, server, tlsPeer, tlsPeer)
	_, err := s.run(nil)
	wantConfig(t, "a configuration without TLS 1.3", err)
}

func TestTLSConfigs(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	nameless := client.Clone()
	nameless.ServerName = ""
	old := server.Clone()
	old.MaxVersion = tls.VersionTLS12
	small := tlsPeer
	small.Receive = MinTLSFrame - 1
	for why, c := range map[string]struct {
		config *tls.Config
		peer   TLSPeer
	}{"none": {nil, tlsPeer}, "no name to expect": {nameless, tlsPeer}, "no TLS 1.3": {old, tlsPeer}, "small receives": {client, small}} {
		_, err := NewTLSClient(t.Context(), c.config, c.peer)
		wantConfig(t, why, err)
	}
}

// TestTLSCloseEarly: a handshake may be given up at any time, and leaves no goroutine.
func TestTLSCloseEarly(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	for after := range 6 {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		n := 0
		s.run(func(_ int, frame []byte) []byte {
			if n++; n == after {
				s.client.Close()
				s.server.Close()
			}
			return frame
		})
		s.client.Close()
		s.server.Close()
		_, _, err := s.server.Finish()
		if after < 4 {
			wantRefused(t, "closed early", err)
		}
	}
}

// A key of the standard library's that is none, or is half made, ends that handshake only:
// crypto/tls would panic with it on a separate goroutine, which ends the process.
func TestTLSBadStandardKeys(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	good := server.Certificates[0].PrivateKey.(*ecdsa.PrivateKey)
	for name, key := range map[string]crypto.PrivateKey{
		"no key":          (*ecdsa.PrivateKey)(nil),
		"a short key":     ed25519.PrivateKey("short"),
		"no RSA key":      (*rsa.PrivateKey)(nil),
		"half an RSA key": &rsa.PrivateKey{},
		"half a key":      &ecdsa.PrivateKey{PublicKey: good.PublicKey},
	} {
		t.Run(name, func(t *testing.T) {
			for _, asks := range []bool{false, true} {
				theirs := server.Clone()
				bad := tls.Certificate{Certificate: server.Certificates[0].Certificate, PrivateKey: key}
				theirs.Certificates = []tls.Certificate{bad}
				if asks {
					theirs.Certificates, theirs.GetCertificate = nil, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &bad, nil }
				}
				s := &sides{}
				var err error
				if s.client, err = NewTLSClient(t.Context(), client, tlsPeer); err != nil {
					t.Fatal(err)
				}
				if s.server, err = NewTLSServer(t.Context(), theirs, tlsPeer); err == nil {
					_, err = s.run(nil)
					s.server.Close()
				}
				wantRefused(t, name, err)
				s.client.Close()
			}
		})
	}
}
