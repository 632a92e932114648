package actor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/states"
)

// A listener that needs no certificates has peers without an identity, and can still reject them.
func TestTLSServerOnly(t *testing.T) {
	onFlavors(t, func(w *world) {
		k := newCerts(w)
		k.server.TLS.ClientAuth, k.client.TLS.Certificates = tls.NoClientCert, nil
		k.server.Authorize = func(r *ConnectRequest) (PeerLimits, *Reject) {
			if r.Identity != "" || string(r.PrivateData) != "hello" {
				return PeerLimits{}, &Reject{PrivateData: []byte("nobody comes in as " + r.Identity)}
			}
			return PeerLimits{}, nil
		}
		server, client, c := w.dialTLS(k.server, k.client)
		r, s := next[*ConnectRequest](server)
		if r.Identity != "" || r.TLS == nil || r.TLS.PeerCertificates != nil {
			w.Errorf("the request is %+v", r)
		}
		server.send(s, &Accept{})
		next[*Established](server)
		if e, _ := next[*Established](client); e.Identity != serverID {
			w.Errorf("established: %+v", e)
		}
		client.send(c, NewSend([]byte("hello")))
		if g := server.any(); g.data != "hello" {
			w.Errorf("got %v", g)
		}
		other := w.probe()
		other.send(w.rt.CreateID(other.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
		if f, _ := next[*Rejected](other); string(f.PrivateData) != "nobody comes in as " {
			w.Errorf("rejected: %v", f)
		}
	})
}

// The name that Dial is given is the one that the server's certificate has to have.
func TestTLSNames(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	k := newCerts(t)
	k.client.TLS.RootCAs = k.Pool()
	for _, name := range []string{"localhost", "another.test"} {
		k.server.TLS = k.server.TLS.Clone()
		k.server.TLS.Certificates = []tls.Certificate{k.Named(t, name, time.Hour)}
		server, client := newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OnLoop(), nil)
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Accept{})
			}
		})
		_, at := listen(server, rt, "127.0.0.1:0", IDConfig{Security: k.server})
		client.send(rt.CreateID(client.pid, IDConfig{Security: k.client}), &Dial{Addr: "localhost" + at[len("127.0.0.1"):]})
		switch m := client.any().msg.(type) {
		case *Established:
			if m.Identity != "localhost" {
				t.Errorf("%s is taken as %s", name, m.Identity)
			}
		case Failure:
			if name == "localhost" || !as[x509.HostnameError](m) {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// Certificates are replaced while there are connections, which stay.
func TestTLSCertificatesRotate(t *testing.T) {
	onFlavors(t, func(w *world) {
		k := newCerts(w)
		current := k.Of(w, serverID, there)
		k.server.TLS.Certificates = nil
		k.server.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &current, nil }
		mine := k.client.TLS.Certificates[0]
		k.client.TLS.Certificates = nil
		k.client.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &mine, nil }
		server, client := w.farProbe(), w.probe()
		w.listen(server, IDConfig{Security: k.server})
		var pairs []pair
		dial := func(identity string) {
			w.Helper()
			p := pair{client: client, server: server, c: w.rt.CreateID(client.pid, IDConfig{Security: k.client})}
			client.send(p.c, &Dial{Addr: there + ":7471"})
			_, p.s = next[*ConnectRequest](server)
			server.send(p.s, &Accept{})
			es, _ := next[*Established](server)
			if ec, _ := next[*Established](client); ec.Identity != identity || es.Identity != aliceID {
				w.Errorf("established: %s, %s", ec.Identity, es.Identity)
			}
			pairs = append(pairs, p)
		}
		dial(serverID)
		current = k.Of(w, "spiffe://test/second", there)
		dial("spiffe://test/second")
		other := newCerts(w) // an authority that the clients do not know yet
		current = other.Of(w, serverID, there)
		client.send(w.rt.CreateID(client.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
		if f, ok := until[*Closed](client)[0].msg.(Failure); !ok || !as[x509.UnknownAuthorityError](f) {
			w.Errorf("of another authority: %v", f)
		}
		server.quiet()
		current = k.Of(w, "spiffe://test/third", there)
		dial("spiffe://test/third")
		for _, p := range pairs {
			client.send(p.c, NewSend([]byte("still there")))
			if g := server.any(); g.data != "still there" {
				w.Errorf("got %v", g)
			}
		}
	})
}

// A failure of user code in a tls.Config ends its own handshake, at the latest at the deadline.
// Others go on.
func TestTLSUsersCode(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(release chan struct{})
		says string
	}{
		"panics": {func(chan struct{}) { panic("mine") }, "VerifyConnection has panicked: mine"},
		"exits":  {func(chan struct{}) { runtime.Goexit() }, "VerifyConnection has not returned"},
		"blocks": {func(release chan struct{}) { <-release }, ""},
	} {
		for _, side := range []string{"server", "client"} {
			t.Run(name+"/"+side, func(t *testing.T) {
				onFlavors(t, func(w *world) {
					k := newCerts(w)
					release := make(chan struct{})
					defer close(release)
					bad, server := *k.client, w.farProbe()
					misbehave := func(tls.ConnectionState) error { tt.do(release); return nil }
					if side == "client" {
						bad.TLS = bad.TLS.Clone()
						bad.TLS.VerifyConnection = misbehave
					} else {
						mallory := k.Of(w, "spiffe://test/mallory", here)
						bad.TLS = bad.TLS.Clone()
						bad.TLS.Certificates = []tls.Certificate{mallory}
						k.server.TLS.VerifyConnection = func(s tls.ConnectionState) error {
							if s.PeerCertificates[0].URIs[0].Path == "/mallory" {
								return misbehave(s)
							}
							return nil
						}
					}
					w.listen(server, IDConfig{Security: k.server})
					client := w.probe()
					client.send(w.rt.CreateID(client.pid, IDConfig{Security: &bad}), &Dial{Addr: there + ":7471"})
					settle()
					honest := w.probe()
					honest.send(w.rt.CreateID(honest.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
					_, s := next[*ConnectRequest](server)
					server.send(s, &Accept{})
					next[*Established](server)
					next[*Established](honest)
					var end []got
					if d := elapsed(func() { end = until[*Closed](client) }); d > 10*time.Second || (d > 7*time.Second) != (name == "blocks") {
						w.Errorf("it ends after %v", d)
					}
					f, ok := end[0].msg.(Failure)
					if !ok || len(end) != 2 {
						w.Fatalf("the client gets %v", end)
					}
					if side == "client" && !contains(f.Error(), tt.says) {
						w.Errorf("the client gets %v", f)
					}
					settle()
					server.quiet()
				})
			})
		}
	}
}

// Runtimes are shut down while handshakes are at any point, and the user's code blocks.
func TestTLSShutdownDuringHandshakes(t *testing.T) {
	for at := range 5 {
		onFlavors(t, func(w *world) {
			k, server := newCerts(w), w.farProbe()
			release := make(chan struct{})
			w.Cleanup(func() { close(release) })
			w.listen(server, IDConfig{Security: k.server})
			n := 0
			w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
				if m != cmidtest.MsgSend {
					return b
				}
				if n++; n > at {
					return nil
				}
				return b
			})
			client := w.probe()
			client.send(w.rt.CreateID(client.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
			settle()
			w.f.Intercept(nil)
			k.client.TLS.VerifyConnection = func(tls.ConnectionState) error { <-release; return nil }
			client.send(w.rt.CreateID(client.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
			settle()
			for _, rt := range []*Runtime{w.far, w.rt} {
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				if d := elapsed(func() { _ = rt.Shutdown(ctx) }); d > time.Second {
					w.Errorf("Shutdown takes %v", d)
				}
				cancel()
			}
		})
	}
}

// A configuration that cannot be a TLS listener's is refused with the reason.
func TestTLSConfig(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		for name, sec := range map[string]*Security{
			"none": {Mode: TLS}, "no TLS 1.3": {Mode: TLS, TLS: &tls.Config{MaxVersion: tls.VersionTLS12}},
		} {
			p := w.probe()
			w.rt.CreateID(p.pid, IDConfig{Security: sec})
			if cl, _ := next[*Closed](p); !as[error](cl.Err) || !contains(cl.Err.Error(), "TLS") {
				w.Errorf("%s: %v", name, cl.Err)
			}
		}
		p := w.probe()
		p.send(w.rt.CreateID(p.pid, IDConfig{Security: newCerts(w).client}), &Serve{Addr: here + ":7471"})
		next[*Listening](p)
		sec := &Security{Mode: TLS, TLS: &tls.Config{}}
		p.send(w.rt.CreateID(p.pid, IDConfig{Security: sec}), &Serve{Addr: here + ":7472"})
		f, _ := next[*CommandFailed](p)
		is(w, f, unix.EINVAL)
		is(w, f, errNoCertificate)
		next[*Closed](p)
		p.send(w.rt.CreateID(p.pid, IDConfig{Security: sec}), &Listen{})
		f, _ = next[*CommandFailed](p)
		is(w, f, errNoCertificate)
	})
}
