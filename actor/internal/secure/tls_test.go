package secure

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue signs a certificate for name that ends in so long.
func (a *authority) issue(t testing.TB, name string, valid time.Duration) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// configs are those of a server and of a client that authenticate each other.
func (a *authority) configs(t testing.TB) (client, server *tls.Config) {
	t.Helper()
	curves := []tls.CurveID{tls.X25519} // short handshakes
	client = &tls.Config{
		RootCAs: a.pool(), ServerName: "server.test", Certificates: []tls.Certificate{a.issue(t, "client.test", time.Hour)},
		CurvePreferences: curves,
	}
	server = &tls.Config{
		ClientCAs: a.pool(), ClientAuth: tls.RequireAndVerifyClientCert, CurvePreferences: curves,
		Certificates: []tls.Certificate{a.issue(t, "server.test", time.Hour)},
	}
	return client, server
}

var tlsPeer = TLSPeer{Binding: route, Request: requestHello, Reply: replyHello, Receive: MinTLSFrame}

// sides is a handshake in TLS mode.
type sides struct {
	client, server *TLS
	toServer       bool // the frame under way
}

func begin(t testing.TB, client, server *tls.Config, of, at TLSPeer) *sides {
	t.Helper()
	c, err := NewTLSClient(t.Context(), client, of)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewTLSServer(t.Context(), server, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Cleanup(s.Close)
	return &sides{client: c, server: s}
}

// run carries frames until there are no more. change may replace each, which number n it is.
func (s *sides) run(change func(n int, frame []byte) []byte) (clientErr, serverErr error) {
	for n := 0; ; {
		frame, to, err := s.client.Next(), s.server, &serverErr
		if frame == nil {
			if frame = s.server.Next(); frame == nil {
				return clientErr, serverErr
			}
			to, err = s.client, &clientErr
		}
		s.toServer = to == s.server
		if change != nil {
			frame = change(n, frame)
		}
		n++
		if e := to.Take(frame); *err == nil {
			*err = e
		}
	}
}

func TestTLS(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(nil); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	c := &conversation{}
	var err error
	var known tls.ConnectionState
	if c.client, known, err = s.client.Finish(); err != nil || known.PeerCertificates[0].Subject.CommonName != "server.test" {
		t.Fatal(err, known.PeerCertificates)
	}
	if c.server, known, err = s.server.Finish(); err != nil || known.PeerCertificates[0].Subject.CommonName != "client.test" {
		t.Fatal(err, known.PeerCertificates)
	}
	s.client.Close()
	s.server.Close()
	c.exchange(t)
	if known.NegotiatedProtocol != ALPN || known.Version != tls.VersionTLS13 {
		t.Errorf("%s, version %#x", known.NegotiatedProtocol, known.Version)
	}
}

// TestTLSHidesCertificates: nobody on the path sees who is there.
func TestTLSHidesCertificates(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	s := begin(t, client, server, tlsPeer, tlsPeer)
	var seen []byte
	if ce, se := s.run(func(_ int, frame []byte) []byte {
		if frame[1] != levelInitial {
			seen = append(seen, frame...)
		}
		return frame
	}); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	if len(seen) < 1000 || bytes.Contains(seen, []byte("client.test")) || bytes.Contains(seen, []byte("authority")) {
		t.Errorf("names are in the clear in %d bytes", len(seen))
	}
}

// TestTLSRefusals: who is not wanted gets nothing, and each side knows why.
func TestTLSRefusals(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	for why, c := range map[string]struct {
		change             func(client, server *tls.Config)
		atClient, atServer string // parts of the errors
	}{
		"a client without a certificate": {
			func(c, _ *tls.Config) { c.Certificates = nil }, "peer refuses", "didn't provide a certificate",
		},
		"a client of another authority": {
			func(c, _ *tls.Config) { c.Certificates = []tls.Certificate{other.issue(t, "client.test", time.Hour)} },
			"peer refuses", "unknown authority",
		},
		"a client whose certificate has expired": {
			func(c, _ *tls.Config) { c.Certificates = []tls.Certificate{a.issue(t, "client.test", -time.Hour)} },
			"peer refuses", "expired",
		},
		"a server of another authority": {
			func(_, s *tls.Config) { s.Certificates = []tls.Certificate{other.issue(t, "server.test", time.Hour)} },
			"unknown authority", "peer refuses",
		},
		"a server of another name": {
			func(_, s *tls.Config) { s.Certificates = []tls.Certificate{a.issue(t, "another.test", time.Hour)} },
			"not server.test", "peer refuses",
		},
		"a server whose certificate has expired": {
			func(_, s *tls.Config) { s.Certificates = []tls.Certificate{a.issue(t, "server.test", -time.Hour)} },
			"expired", "peer refuses",
		},
	} {
		client, server := a.configs(t)
		c.change(client, server)
		s := begin(t, client, server, tlsPeer, tlsPeer)
		clientErr, serverErr := s.run(nil)
		// The client is done before it hears what the server thinks of its certificate.
		if strings.HasPrefix(why, "a client") {
			if clientErr = PeerAlert([]byte{frameAlert, 42}); !errors.Is(clientErr, tls.AlertError(42)) {
				t.Errorf("an alert is %v", clientErr)
			}
		} else if s.client.Done() {
			t.Errorf("%s: the client is done", why)
		}
		wantRefused(t, why, clientErr)
		wantRefused(t, why, serverErr)
		for _, side := range []struct {
			err  error
			want string
		}{{clientErr, c.atClient}, {serverErr, c.atServer}} {
			if side.err == nil || !strings.Contains(side.err.Error(), side.want) {
				t.Errorf("%s: %v, want %q", why, side.err, side.want)
			}
		}
		if s.server.Done() {
			t.Errorf("%s: the server is done", why)
		}
		_, _, err := s.server.Finish()
		wantRefused(t, why, err)
	}
}

func TestTLSServerOnly(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	client.Certificates, server.ClientAuth = nil, tls.NoClientCert
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(nil); ce != nil || se != nil || !s.client.Done() || !s.server.Done() {
		t.Fatal(ce, se)
	}
}

// TestTLSBinding: both must see the same addresses, device and hellos.
func TestTLSBinding(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	for why, change := range map[string]func(*TLSPeer){
		"another address": func(p *TLSPeer) { p.Binding.Client = netip.MustParseAddr("192.0.2.9") },
		"no addresses":    func(p *TLSPeer) { p.Binding.Client = netip.Addr{} },
		"another device":  func(p *TLSPeer) { p.Binding.Device = DeviceInfiniBand },
		"request's hello": func(p *TLSPeer) { p.Request[6] ^= 1 },
		"reply's hello":   func(p *TLSPeer) { p.Reply[11] ^= 1 },
	} {
		other := tlsPeer
		change(&other)
		s := begin(t, client, server, tlsPeer, other)
		clientErr, serverErr := s.run(nil)
		wantRefused(t, why, serverErr)
		wantRefused(t, why, clientErr)
		if s.client.Done() || s.server.Done() {
			t.Errorf("%s: done", why)
		}
	}
}

// TestTLSOtherProtocol: a peer of another protocol is refused, whatever certificate it has.
func TestTLSOtherProtocol(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	s := begin(t, client, server, tlsPeer, tlsPeer)
	client = client.Clone()
	client.NextProtos, client.MinVersion = []string{"h3"}, tls.VersionTLS13
	alien := tls.QUICClient(&tls.QUICConfig{TLSConfig: client})
	alien.SetTransportParameters([]byte{})
	if err := alien.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer alien.Close()
	for e := alien.NextEvent(); e.Kind != tls.QUICNoEvent; e = alien.NextEvent() {
		if e.Kind == tls.QUICWriteData {
			err := s.server.Take(append([]byte{frameHandshake, levelInitial}, e.Data...))
			wantRefused(t, "another protocol", err)
			if err == nil || !strings.Contains(err.Error(), "protocol") {
				t.Errorf("%v", err)
			}
		}
	}
}

// TestTLSFlips: one bit of any byte of any frame, and the side that receives it never ends up with
// a channel.
func TestTLSFlips(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	var lengths []int
	var toServer []bool
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(func(_ int, frame []byte) []byte {
		lengths = append(lengths, len(frame))
		toServer = append(toServer, s.toServer)
		return frame
	}); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	tries := 0
	for at, length := range lengths {
		// Lengths of signatures vary by a byte or two.
		for i := 0; i < length-4; i++ {
			tries++
			s := begin(t, client, server, tlsPeer, tlsPeer)
			s.run(func(n int, frame []byte) []byte {
				if n == at {
					frame[i] ^= 1 << (i % 8)
				}
				return frame
			})
			if s.server.Done() || s.client.Done() && !toServer[at] {
				t.Errorf("byte %d of frame %d changed: client done %v, server done %v", i, at, s.client.Done(), s.server.Done())
			}
			s.client.Close()
			s.server.Close()
		}
	}
	if tries < 1000 {
		t.Errorf("%d tries", tries)
	}
}

// TestTLSBounds: a peer that sends without an end, or garbage, is refused within bounds.
func TestTLSBounds(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	// A ClientHello of 65,535 bytes.
	longest := append([]byte{1, 0, 0xff, 0xff}, make([]byte, 1<<16)...)
	for why, send := range map[string]func(n int) []byte{
		"a byte at a time": func(n int) []byte { return longest[n : n+1] },
		"without an end": func(n int) []byte {
			if n == 0 {
				return longest[:8<<10]
			}
			return longest[8<<10 : 16<<10]
		},
		"too much at once": func(int) []byte { return append(longest, longest...) },
	} {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		var err error
		for n := 0; err == nil && n < MaxTLSFrames+1; n++ {
			err = s.server.Take(append([]byte{frameHandshake, levelInitial}, send(n)...))
		}
		wantRefused(t, why, err)
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v, want that it is too much", why, err)
		}
		if alert := s.server.Next(); len(alert) != alertLen || alert[0] != frameAlert || s.server.Next() != nil {
			t.Errorf("%s: %x is sent, want an alert", why, alert)
		}
	}
	for why, frame := range map[string][]byte{
		"nothing": {}, "a type": {frameHandshake}, "an empty frame": {frameHandshake, levelHandshake},
		"another type": {1, 0, 0, 0, 0, 0, 0, 0}, "another level": {frameHandshake, 3, 1}, "early data": {frameHandshake, 1, 1},
		"sealed too early": append([]byte{frameHandshake, levelHandshake}, make([]byte, 40)...),
		"garbage":          append([]byte{frameHandshake, levelInitial}, bytes.Repeat([]byte{0xA5}, 500)...),
		"an alert":         {frameAlert, 40},
	} {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		wantRefused(t, why, s.server.Take(frame))
		wantRefused(t, why+", and then", s.server.Take(s.client.Next()))
	}
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(nil); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	sealed, err := frames(nil, levelHandshake, []byte{24, 0, 0, 1, 0}, MinTLSFrame, s.client.seal)
	if err != nil {
		t.Fatal(err)
	}
	err = s.server.Take(sealed[0])
	if wantRefused(t, "a frame after the end", err); err == nil || !strings.Contains(err.Error(), "after the end") {
		t.Errorf("%v, want that it is after the end", err)
	}
	if s.server.Done() {
		t.Error("still done")
	}
}

// TestTLSUnbound: a handshake that ends without a binding is refused, should crypto/tls allow one.
func TestTLSUnbound(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	s := begin(t, client, server, tlsPeer, tlsPeer)
	_, err := s.run(func(_ int, frame []byte) []byte {
		s.server.bound = false
		return frame
	})
	if wantRefused(t, "not bound", err); s.server.Done() {
		t.Error("done")
	}
}

// TestTLSLongChains: our own certificates must fit what the peer has room for.
func TestTLSLongChains(t *testing.T) {
	a := newAuthority(t)
	client, server := a.configs(t)
	for range 60 {
		server.Certificates[0].Certificate = append(server.Certificates[0].Certificate, a.cert.Raw)
	}
	s := begin(t, client, server, tlsPeer, tlsPeer)
	_, err := s.run(nil)
	wantRefused(t, "a long chain", err)
	wantConfig(t, "a long chain", err)
}

// TestTLSUsersCode: what panics, ends its goroutine or does not return, ends that handshake only.
func TestTLSUsersCode(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	release := make(chan struct{})
	defer close(release)
	var cancel context.CancelCauseFunc
	misbehave := map[string]func(){
		"panicked": func() { panic("mine") }, "not returned": runtime.Goexit,
		"given up": func() { cancel(errors.New("given up")); <-release },
	}
	for why, do := range misbehave {
		for what, change := range map[string]func(c *tls.Config){
			"VerifyConnection": func(c *tls.Config) { c.VerifyConnection = func(tls.ConnectionState) error { do(); return nil } },
			"VerifyPeerCertificate": func(c *tls.Config) {
				c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { do(); return nil }
			},
			"GetCertificate": func(c *tls.Config) {
				c.Certificates = nil
				c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { do(); return nil, nil }
			},
			"GetConfigForClient": func(c *tls.Config) {
				c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { do(); return nil, nil }
			},
			"the private key": func(c *tls.Config) {
				c.Certificates[0].PrivateKey = badKey{c.Certificates[0].PrivateKey.(crypto.Signer), do}
			},
		} {
			theirs := server.Clone()
			theirs.Certificates = append([]tls.Certificate(nil), server.Certificates...)
			change(theirs)
			var ctx context.Context
			ctx, cancel = context.WithCancelCause(t.Context())
			s := &sides{}
			var err error
			if s.client, err = NewTLSClient(t.Context(), client, tlsPeer); err != nil {
				t.Fatal(err)
			}
			if s.server, err = NewTLSServer(ctx, theirs, tlsPeer); err != nil {
				t.Fatal(err)
			}
			_, err = s.run(nil)
			wantRefused(t, what, err)
			if err == nil || !strings.Contains(err.Error(), why) || why != "given up" && !strings.Contains(err.Error(), what) {
				t.Errorf("%s has %s: %v", what, why, err)
			}
			s.client.Close()
			s.server.Close()
			cancel(nil)
		}
	}
}

type badKey struct {
	crypto.Signer
	do func()
}

func (k badKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.do()
	return k.Signer.Sign(random, digest, opts)
}

// TestTLSGivenUp: a peer that sends part of its handshake and no more is given up by the context.
func TestTLSGivenUp(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	s, err := NewTLSServer(ctx, server, tlsPeer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewTLSClient(t.Context(), client, tlsPeer)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hello := c.Next()
	if err := s.Take(hello[:10]); err != nil {
		t.Fatal(err)
	}
	slow := errors.New("too slow")
	cancel(slow)
	err = s.Take(append([]byte{frameHandshake, levelInitial}, hello[10:]...))
	if wantRefused(t, "what comes too late", err); !errors.Is(err, slow) {
		t.Errorf("%v, want %v", err, slow)
	}
	s.Close()
}

// TestTLSPerClient: what GetConfigForClient returns is no way around our protocol.
func TestTLSPerClient(t *testing.T) {
	client, server := newAuthority(t).configs(t)
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
	client, server := newAuthority(t).configs(t)
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
	client, server := newAuthority(t).configs(t)
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

// TestTLSSplice: a frame of one handshake in the place of another's. Both sides have the same
// certificates in both.
func TestTLSSplice(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	var recorded [][]byte
	var toServer []bool
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(func(_ int, frame []byte) []byte {
		recorded = append(recorded, bytes.Clone(frame))
		toServer = append(toServer, s.toServer)
		return frame
	}); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	for at := range recorded {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		s.run(func(n int, frame []byte) []byte {
			if n == at {
				return recorded[n]
			}
			return frame
		})
		if s.server.Done() || s.client.Done() && !toServer[at] {
			t.Errorf("frame %d of another handshake: client done %v, server done %v", at, s.client.Done(), s.server.Done())
		}
	}
}

// TestTLSReplay: all that a client has sent, sent again, is nobody.
func TestTLSReplay(t *testing.T) {
	client, server := newAuthority(t).configs(t)
	var recorded [][]byte
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(func(_ int, frame []byte) []byte {
		if s.toServer {
			recorded = append(recorded, bytes.Clone(frame))
		}
		return frame
	}); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	again, err := NewTLSServer(t.Context(), server, tlsPeer)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, frame := range recorded {
		err = again.Take(frame)
	}
	wantRefused(t, "the same frames", err)
}
