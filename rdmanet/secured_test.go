package rdmanet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/certtest"
)

// sharedKey returns PSK mode for both sides, which share one key, alice's.
func sharedKey(tb testing.TB) *rdma.Security {
	tb.Helper()
	c := rdma.Credential{Identity: "alice"}
	copy(c.Key[:], "of a test, so it is no secret....")
	k := new(rdma.Keyring)
	if err := errors.Join(k.Use(c), k.Accept(c)); err != nil {
		tb.Fatal(err)
	}
	return &rdma.Security{Mode: rdma.PSK, Keys: k}
}

// certified returns a tls.Config for both sides, which have the same certificate.
func certified(tb testing.TB) *tls.Config {
	tb.Helper()
	a := certtest.New(tb)
	return &tls.Config{
		Certificates: []tls.Certificate{a.Of(tb, "spiffe://test/alice", "127.0.0.1")}, RootCAs: a.Pool(), ServerName: "127.0.0.1",
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
	}
}

// Both ends of a stream report the other's identity, if its connection is secured.
func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		sec  *rdma.Security
		want string
	}{
		"insecure": {nil, ""},
		"PSK":      {sharedKey(t), "alice"},
		"TLS":      {&rdma.Security{Mode: rdma.TLS, TLS: certified(t)}, "spiffe://test/alice"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := pipe(t, openRuntime(t, rdma.Config{Security: c.sec}))
			if client.Identity() != c.want || server.Identity() != c.want {
				t.Errorf("the peers are %q and %q, want %q", client.Identity(), server.Identity(), c.want)
			}
		})
	}
}

type identityKey struct{}

// The standard library's server knows the client's identity.
func TestHTTPIdentity(t *testing.T) {
	cfg := rdma.Config{Security: sharedKey(t)}
	srv := serveHTTP(t, listen(t, openRuntime(t, cfg)), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Context().Value(identityKey{}))
	}))
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, identityKey{}, c.(*Conn).Identity())
	}
	srv.Start()
	tr := &http.Transport{DialContext: NewDialer(openRuntime(t, cfg)).DialContext}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if who, err := io.ReadAll(res.Body); string(who) != "alice" || err != nil {
		t.Errorf("the server sees %q, %v", who, err)
	}
}

// A stream carries its program's TLS, whether its connection is secured or not: then the peer's
// identity is TLS's.
func TestOwnTLS(t *testing.T) {
	for name, sec := range map[string]*rdma.Security{"insecure": {Mode: rdma.Insecure}, "PSK": sharedKey(t)} {
		t.Run(name, func(t *testing.T) {
			cfg := certified(t)
			c, s := pipe(t, openRuntime(t, rdma.Config{Security: sec}))
			client, server := tls.Client(c, cfg), tls.Server(s, cfg)
			want := random(1 << 20)
			go func() {
				_, _ = io.Copy(server, server)
				_ = server.Close()
			}()
			go func() {
				_, _ = client.Write(want)
				_ = client.CloseWrite()
			}()
			if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes came back, %v", len(got), err)
			}
			for who, of := range map[string]*tls.Conn{"server": server, "client": client} {
				chains := of.ConnectionState().VerifiedChains
				if len(chains) != 1 || len(chains[0][0].URIs) != 1 || chains[0][0].URIs[0].String() != "spiffe://test/alice" {
					t.Errorf("the %s has verified %v", who, chains)
				}
			}
		})
	}
}
