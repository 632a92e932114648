package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/internal/certtest"
)

// sharedKey returns PSK mode for both sides, which have one key, of alice's.
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

// bothCertified returns TLS mode for both sides, which have the same certificate.
func bothCertified(tb testing.TB) *rdma.Security {
	tb.Helper()
	a := certtest.New(tb)
	return &rdma.Security{Mode: rdma.TLS, TLS: &tls.Config{
		Certificates: []tls.Certificate{a.Of(tb, "spiffe://test/alice", there)}, RootCAs: a.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
		// a world has another clock than the certificates
		Time: func() time.Time { return a.Cert.NotAfter.Add(-time.Minute) },
	}}
}

// The identity of the other side comes from the connection, and is the same for every kind of call
// and for both sides. Without security it is empty.
func TestIdentity(t *testing.T) {
	for name, mode := range map[string]struct {
		sec  func(testing.TB) *rdma.Security
		want string
	}{
		"insecure": {func(testing.TB) *rdma.Security { return &rdma.Security{} }, ""},
		"PSK":      {sharedKey, "alice"},
		"TLS":      {bothCertified, "spiffe://test/alice"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := rdma.Config{Security: mode.sec(t)}
			seen := &seenInfo{t: t, want: mode.want, tls: name == "TLS"}
			guard := []Interceptor{func(ctx context.Context, call *Info, next func(context.Context) error) error {
				seen.look(call)
				return next(ctx)
			}}
			inWorld(t, rigConfig{
				server: ServerConfig{Interceptors: guard}, client: ClientConfig{Interceptors: guard},
				world: actortest.Config{Runtime: cfg},
			}, func(s *Server) {
				handleCount(s)
				look := func(ctx context.Context, q, reply []byte) ([]byte, error) {
					seen.look(InfoOf(ctx))
					return append(reply, q...), nil
				}
				HandleRaw(s, echo, look)
				HandleRaw(s, fail, look, HandlerConfig{OnLoop: true})
			}, func(r *rig) {
				for _, m := range []RawMethod{echo, fail} {
					if _, err := CallRaw(r.t.Context(), r.c, m, []byte("x"), nil); err != nil {
						r.t.Error(err)
					}
				}
				in, err := Open(r.t.Context(), r.c, count, nil)
				if err != nil {
					r.t.Fatal(err)
				}
				for _, err := range in.All() {
					r.t.Error(err)
				}
				if seen.server != 5 || seen.client != 3 {
					r.t.Errorf("looked %d times at the server and %d at the client, want 5 and 3", seen.server, seen.client)
				}
			})
		})
	}
}

// seenInfo compares the other side's identity in calls with the expected one.
type seenInfo struct {
	t    *testing.T
	want string
	tls  bool

	mu             sync.Mutex
	server, client int
}

func (s *seenInfo) look(call *Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := "client"
	if s.client++; call.Server {
		s.client--
		s.server++
		who = "server"
	}
	if call.Identity != s.want {
		s.t.Errorf("%s at the %s: the other side is %q, want %q", call.Method, who, call.Identity, s.want)
	}
	if (call.TLS != nil) != s.tls || s.tls && (call.TLS.Version != tls.VersionTLS13 || len(call.TLS.VerifiedChains) != 1) {
		s.t.Errorf("%s at the %s: TLS is %+v", call.Method, who, call.TLS)
	}
}

// Each call of a client has the identity of that client's key.
func TestIdentityOfEach(t *testing.T) {
	keys := new(rdma.Keyring)
	all := map[string]rdma.Credential{}
	for _, name := range []string{"ann", "bob"} {
		c := rdma.Credential{Identity: name}
		copy(c.Key[:], name+"'s, of a test, so it is no secret")
		all[name] = c
	}
	if err := errors.Join(keys.Use(all["ann"]), keys.Accept(all["ann"], all["bob"])); err != nil {
		t.Fatal(err)
	}
	cfg := rigConfig{world: actortest.Config{Runtime: rdma.Config{Security: &rdma.Security{Mode: rdma.PSK, Keys: keys}}}}
	inWorld(t, cfg, func(s *Server) {
		HandleRaw(s, echo, func(ctx context.Context, _, reply []byte) ([]byte, error) {
			return append(reply, InfoOf(ctx).Identity...), nil
		})
	}, func(r *rig) {
		if err := keys.Use(all["bob"]); err != nil {
			r.t.Fatal(err)
		}
		bob := r.dial()
		defer bob.Close()
		for range 3 {
			for want, c := range map[string]*Client{"ann": r.c, "bob": bob} {
				if got, err := CallRaw(r.t.Context(), c, echo, nil, nil); err != nil || string(got) != want {
					r.t.Errorf("%s is %q, %v", want, got, err)
				}
			}
		}
	})
}
