package secure

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

// configs returns those of a client and of a server that authenticate each other.
func configs(t testing.TB, a *certtest.Authority) (client, server *tls.Config) {
	t.Helper()
	curves := []tls.CurveID{tls.X25519} // short handshakes
	client = &tls.Config{
		RootCAs: a.Pool(), ServerName: "server.test", Certificates: []tls.Certificate{a.Named(t, "client.test", time.Hour)},
		CurvePreferences: curves,
	}
	server = &tls.Config{
		ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, CurvePreferences: curves,
		Certificates: []tls.Certificate{a.Named(t, "server.test", time.Hour)},
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

// run carries frames until there are none left. change may replace each, which number n it is.
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
	client, server := configs(t, certtest.New(t))
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

// TestTLSHidesCertificates: no observer on the path sees the identities.
func TestTLSHidesCertificates(t *testing.T) {
	client, server := configs(t, certtest.New(t))
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

// TestTLSRefusals: an unwanted peer gets nothing, and each side learns the reason.
func TestTLSRefusals(t *testing.T) {
	a, other := certtest.New(t), certtest.New(t)
	for why, c := range map[string]struct {
		change             func(client, server *tls.Config)
		atClient, atServer string // parts of the errors
	}{
		"a client without a certificate": {
			func(c, _ *tls.Config) { c.Certificates = nil }, "peer refuses", "didn't provide a certificate",
		},
		"a client of another authority": {
			func(c, _ *tls.Config) { c.Certificates = []tls.Certificate{other.Named(t, "client.test", time.Hour)} },
			"peer refuses", "unknown authority",
		},
		"a client whose certificate has expired": {
			func(c, _ *tls.Config) { c.Certificates = []tls.Certificate{a.Named(t, "client.test", -time.Hour)} },
			"peer refuses", "expired",
		},
		"a server of another authority": {
			func(_, s *tls.Config) { s.Certificates = []tls.Certificate{other.Named(t, "server.test", time.Hour)} },
			"unknown authority", "peer refuses",
		},
		"a server of another name": {
			func(_, s *tls.Config) { s.Certificates = []tls.Certificate{a.Named(t, "another.test", time.Hour)} },
			"not server.test", "peer refuses",
		},
		"a server whose certificate has expired": {
			func(_, s *tls.Config) { s.Certificates = []tls.Certificate{a.Named(t, "server.test", -time.Hour)} },
			"expired", "peer refuses",
		},
	} {
		client, server := configs(t, a)
		c.change(client, server)
		s := begin(t, client, server, tlsPeer, tlsPeer)
		clientErr, serverErr := s.run(nil)
		// The client is done before the server's verdict on its certificate arrives.
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
	client, server := configs(t, certtest.New(t))
	client.Certificates, server.ClientAuth = nil, tls.NoClientCert
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(nil); ce != nil || se != nil || !s.client.Done() || !s.server.Done() {
		t.Fatal(ce, se)
	}
}

// TestTLSBinding: both must see the same addresses, device and hellos.
func TestTLSBinding(t *testing.T) {
	client, server := configs(t, certtest.New(t))
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
	client, server := configs(t, certtest.New(t))
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
