package actor

import (
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// half returns the request of a stranger that begins a handshake and does not continue.
func half(tb testing.TB, s *Security) []byte {
	tb.Helper()
	h := wire.Hello{Features: uint8(secure.FeatureTLS), Credits: 2, Eager: kib, MaxMessage: kib}
	if s.Mode == TLS {
		return h.Put(make([]byte, secure.HintLen))
	}
	h.Features = uint8(secure.FeaturePSK)
	b := h.Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
	alice := credential("alice", 1) // a credential that could be seen on the wire
	_, data, err := secure.NewPSKClient(&alice, secure.AES256GCM, secure.Binding{}, secure.Hello(b))
	if err != nil {
		tb.Fatal(err)
	}
	copy(b[wire.HelloLen+secure.HintLen:], data[:])
	return b
}

// inSecuredDomain runs test once for each mode, with a listener whose secured connections share a
// domain, and what their clients have.
func inSecuredDomain(t *testing.T, test func(tb testing.TB, d *inDomain, cfg IDConfig)) {
	t.Helper()
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		have := func(tb testing.TB) IDConfig {
			cfg := IDConfig{Memory: 1 << 12, Security: made(tb)}
			cfg.Security.AllowOneSided = rw
			return cfg
		}
		onAllDevices(t, func(w *world) {
			cfg := have(w)
			test(w, shareDomain(w, w.far, w.rt, there+":7471", there+":7472", cfg), cfg)
		})
		t.Run("embedded", func(t *testing.T) {
			rt, cfg := openIWARP(t, testSystem(t)), have(t)
			test(t, shareDomain(t, rt, rt, "127.0.0.1:0", "127.0.0.1:0", cfg), cfg)
		})
	})
}

// intrude uses a key without permission, and waits for the end of the connection.
func intrude(p *probe, id *actor.PID, key RemoteKey, write bool) {
	p.tb.Helper()
	near := memory(p, id, 8, 0)
	fill(p, id, near, "stranger")
	if write {
		p.send(id, &Write{Memory: near, Length: 8, Key: key})
	} else {
		p.send(id, &Read{Memory: near, Length: 8, Key: key})
	}
	for _, g := range until[*Closed](p) {
		if _, ok := g.msg.(*ReadDone); ok {
			p.tb.Error("a stranger's Read was answered")
		}
	}
}

// A stranger that has begun a handshake reaches nothing of a domain, although it knows a key of it:
// its connection ends. An admitted peer has access before it gets a key with the Accept.
func TestStrangerInDomain(t *testing.T) {
	inSecuredDomain(t, func(tb testing.TB, d *inDomain, cfg IDConfig) {
		p := d.join(cfg)
		shared := memory(p.server, p.s, 1<<10, rw)
		fill(p.server, p.s, shared, "a secret")
		key := grant(p.server, p.s, shared)
		for _, write := range []bool{false, true} {
			stranger := newProbe(tb, d.rt.sys, d.rt.OnLoop(), nil)
			id := d.rt.CreateID(stranger.pid, IDConfig{Raw: true, Memory: 100})
			stranger.send(id, &Dial{Addr: d.at, PrivateData: half(tb, cfg.Security)})
			next[*Established](stranger)
			intrude(stranger, id, key, write)
			if got := string(contents(p.server, p.s, shared)[:8]); got != "a secret" {
				tb.Errorf("after a stranger the memory holds %q", got)
			}
		}
		d.server.quiet()
		q := d.join(cfg)
		if got := have(q, key, 8); got != "a secret" {
			tb.Errorf("who is authenticated reads %q", got)
		}
		put(p, key, "as before")
	})
}

// Memory granted in the private data of Connect and Accept can be used immediately: the queue pairs
// of both sides let the peer in by then.
func TestDomainLetsInEarly(t *testing.T) {
	inSecuredDomain(t, func(tb testing.TB, d *inDomain, cfg IDConfig) {
		for range 20 {
			client := newProbe(tb, d.rt.sys, d.rt.OnLoop(), nil)
			c := ready(client, d.rt, d.at, cfg)
			near := memory(client, c, 100, rw)
			client.send(c, &Connect{PrivateData: sent(tb, grant(client, c, near))})
			r, s := next[*ConnectRequest](d.server)
			far := memory(d.server, s, 100, rw)
			d.server.send(s, &Accept{PrivateData: sent(tb, grant(d.server, s, far))})
			next[*Established](d.server)
			d.server.send(s, &Write{Memory: far, Length: 8, Key: keyOf(tb, r.PrivateData)})
			e, _ := next[*Established](client)
			client.send(c, &Read{Memory: near, At: 50, Length: 8, Key: keyOf(tb, e.PrivateData)})
			next[*ReadDone](client)
			next[*WriteDone](d.server)
			client.send(c, &Close{})
			until[*Closed](client)
			until[*Closed](d.server)
		}
	})
}

// A listener that does not show who it is reaches nothing of the domain that is dialled from.
func TestStrangeListener(t *testing.T) {
	onAllDevices(t, func(w *world) {
		cfg := IDConfig{Memory: 1 << 10, Domain: new(Domain), Security: mtls(w)}
		cfg.Security.AllowOneSided = rw
		server, client, stranger := w.farProbe(), w.probe(), w.farProbe()
		w.listen(server, IDConfig{Memory: 1 << 10, Security: cfg.Security})
		listen(stranger, w.far, there+":7473", IDConfig{Raw: true, Memory: 100})
		c := w.rt.CreateID(client.pid, cfg)
		client.send(c, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		shared := memory(client, c, 100, rw)
		fill(client, c, shared, "a secret")
		key := grant(client, c, shared)
		for _, write := range []bool{false, true} {
			other := w.probe() // on the same loop
			id := w.rt.CreateID(other.pid, cfg)
			other.send(id, &Dial{Addr: there + ":7473"})
			_, from := next[*ConnectRequest](stranger)
			stranger.send(from, &Accept{PrivateData: wire.Hello{
				Features: uint8(secure.FeatureTLS), Credits: 2, Eager: 8 * kib, MaxMessage: 8 * kib,
			}.Put(nil)})
			next[*Established](stranger)
			next[*Received](stranger) // the ClientHello
			intrude(stranger, from, key, write)
			until[*Closed](other)
			if got := string(contents(client, c, shared)[:8]); got != "a secret" {
				w.Errorf("after a stranger the memory holds %q", got)
			}
		}
		near := memory(server, s, 8, 0)
		server.send(s, &Read{Memory: near, Length: 8, Key: key})
		next[*ReadDone](server)
		if got := string(contents(server, s, near)); got != "a secret" {
			w.Errorf("who is authenticated reads %q", got)
		}
	})
}

// A device that does not let a peer in ends the connection before the peer is notified that there
// is one, and the owner gets the reason. The others of the domain go on.
func TestDeviceLetsNobodyIn(t *testing.T) {
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		onKernelLike(t, kernelLike{}, func(w *world, near, far *kernelLike) {
			cfg := IDConfig{Memory: 1 << 10, Security: made(w)}
			cfg.Security.AllowOneSided = rw
			d := shareDomain(w, w.far, w.rt, there+":7471", there+":7472", cfg)
			p := d.join(cfg)
			dial := func() (c *probe) {
				c = w.probe()
				c.send(w.rt.CreateID(c.pid, cfg), &Dial{Addr: d.at})
				return c
			}
			refused := func(f *CommandFailed) {
				w.Helper()
				if _, ok := errors.AsType[*HandshakeError](f); !ok {
					w.Errorf("%v, want a HandshakeError", f)
				}
				is(w, f, unix.EIO)
			}
			near.lets = unix.EIO
			c := dial()
			f, _ := next[*CommandFailed](c)
			refused(f)
			next[*Closed](c)
			settle()
			d.server.quiet()

			near.lets, far.lets = nil, unix.EIO
			c = dial()
			_, s := next[*ConnectRequest](d.server)
			d.server.send(s, &Accept{})
			f, _ = next[*CommandFailed](d.server)
			refused(f)
			next[*Closed](d.server)
			for _, g := range until[*Closed](c) {
				if _, ok := g.msg.(*Established); ok {
					w.Error("the client hears of a connection")
				}
			}
			put(p, grant(p.server, p.s, memory(p.server, p.s, 100, rw)), "goes on")
		})
	})
}

// A device whose queue pairs have no rights makes secured connections as before.
func TestDeviceWithoutRights(t *testing.T) {
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		onKernelLike(t, kernelLike{blind: true}, func(w *world, _, _ *kernelLike) {
			cfg := IDConfig{Memory: 1 << 10, Security: made(w)}
			cfg.Security.AllowOneSided = rw
			p := shareDomain(w, w.far, w.rt, there+":7471", there+":7472", cfg).join(cfg)
			put(p, grant(p.server, p.s, memory(p.server, p.s, 100, rw)), "by the peer")
		})
	})
}
