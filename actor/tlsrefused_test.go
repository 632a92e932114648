package actor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// logged collects what runtimes log.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// as reports whether err is made of an E.
func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// The client learns why, also if it is the server that refuses; the server logs why. Its owner
// hears of nothing.
func TestTLSRefusals(t *testing.T) {
	alert := as[tls.AlertError]
	verification := as[*tls.CertificateVerificationError]
	for name, tt := range map[string]struct {
		change   func(tb testing.TB, k, other *certs)
		atClient func(err error) bool
		atServer string // is logged
	}{
		"a client without a certificate": {
			func(_ testing.TB, k, _ *certs) { k.client.TLS.Certificates = nil }, alert, "didn't provide a certificate",
		},
		"a client of another authority": {
			func(_ testing.TB, k, other *certs) { k.client.TLS.Certificates = other.client.TLS.Certificates },
			alert, "unknown authority",
		},
		"a client whose certificate has expired": {
			func(tb testing.TB, k, _ *certs) {
				k.client.TLS.Certificates = []tls.Certificate{k.Named(tb, "alice", -time.Hour)}
			}, alert, "expired",
		},
		"a client whose certificate is not to be shown": {
			func(_ testing.TB, k, _ *certs) {
				k.server.TLS.VerifyConnection = func(tls.ConnectionState) error { return errors.New("not today") }
			}, alert, "not today",
		},
		"a server of another authority": {
			func(_ testing.TB, k, other *certs) { k.server.TLS.Certificates = other.server.TLS.Certificates },
			func(err error) bool { return verification(err) && as[x509.UnknownAuthorityError](err) }, "bad certificate",
		},
		"a server of another name": {
			func(tb testing.TB, k, _ *certs) {
				k.server.TLS.Certificates = []tls.Certificate{k.Named(tb, "another.test", time.Hour)}
			}, func(err error) bool { return verification(err) && as[x509.HostnameError](err) }, "bad certificate",
		},
		"a server of another name than is wanted": {
			func(_ testing.TB, k, _ *certs) { k.client.TLS.ServerName = "another.test" }, as[x509.HostnameError], "bad certificate",
		},
		"a server whose certificate has expired": {
			func(tb testing.TB, k, _ *certs) {
				k.client.TLS.ServerName = "server.test"
				k.server.TLS.Certificates = []tls.Certificate{k.Named(tb, "server.test", -time.Hour)}
			}, func(err error) bool { return verification(err) && as[x509.CertificateInvalidError](err) }, "bad certificate",
		},
		"a server that the client does not want": {
			func(_ testing.TB, k, _ *certs) {
				k.server.TLS.ClientAuth, k.client.TLS.Certificates = tls.NoClientCert, nil
				k.client.TLS.VerifyConnection = func(tls.ConnectionState) error { return unix.EXDEV }
			}, func(err error) bool { return errors.Is(err, unix.EXDEV) }, "bad certificate",
		},
		"a client that leaves out addresses": {
			func(_ testing.TB, k, _ *certs) { k.client.NoAddresses = true }, alert, "other addresses",
		},
		"a server without a certificate for the name": {
			func(_ testing.TB, k, _ *certs) {
				k.server.TLS.Certificates = nil
				k.server.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, unix.ENOENT }
			}, alert, "no such file or directory",
		},
		"no curve in common": {
			func(_ testing.TB, k, _ *certs) {
				k.server.TLS.CurvePreferences, k.client.TLS.CurvePreferences = []tls.CurveID{tls.X25519}, []tls.CurveID{tls.CurveP256}
			}, alert, "key exchanges",
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(logged)
			onFlavors(t, func(w *world) {
				k, other := newCerts(w), newCerts(w)
				tt.change(w, k, other)
				server, client, _ := w.dialTLS(k.server, k.client)
				end := until[*Closed](client)
				f, ok := end[0].msg.(Failure)
				if !ok || len(end) != 2 {
					w.Fatalf("the client gets %v", end)
				}
				is(w, f, unix.EACCES)
				if !as[*HandshakeError](f) || !tt.atClient(f) || contains(f.Error(), "is closed") {
					w.Errorf("the client gets %v", f)
				}
				settle()
				server.quiet()
				if !contains(log.String(), tt.atServer) {
					w.Errorf("the server does not log %q: %s", tt.atServer, log)
				}
				w.unauthenticated(1)
			}, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
		})
	}
}

// unauthenticated checks the only listener's counts.
func (w *world) unauthenticated(n uint64) {
	w.Helper()
	for _, i := range w.far.Inspect() {
		if l := i.Listener; l != nil && (l.Refused.Unauthenticated != n || l.Pending != 0) {
			w.Errorf("the listener's counts: %+v", l)
		}
	}
}
