package actor

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// ready makes a new identifier ready to connect to addr.
func ready(p *probe, rt *Runtime, addr string, cfg IDConfig) *actor.PID {
	p.tb.Helper()
	id := rt.CreateID(p.pid, cfg)
	p.send(id, &cmid.ResolveAddr{Dst: MustAddr(addr)})
	next[*cmid.AddrResolved](p)
	p.send(id, &cmid.ResolveRoute{})
	next[*cmid.RouteResolved](p)
	return id
}

// keyOf returns a key that has arrived.
func keyOf(tb testing.TB, b []byte) (k RemoteKey) {
	tb.Helper()
	if err := k.UnmarshalBinary(b); err != nil {
		tb.Fatal(err)
	}
	return k
}

// sent returns a key as it travels.
func sent(tb testing.TB, k RemoteKey) []byte {
	tb.Helper()
	b, err := k.MarshalBinary()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// onEveryRoute runs test with a listener's owner and an address, on each kind of device.
func onEveryRoute(t *testing.T, cfg IDConfig, test func(t testing.TB, client, server *probe, rt *Runtime, at string)) {
	t.Helper()
	onAllDevices(t, func(w *world) {
		server := w.farProbe()
		_, at := listen(server, w.far, there+":7471", cfg)
		test(w, w.probe(), server, w.rt, at)
	})
	t.Run("embedded", func(t *testing.T) {
		rt := openIWARP(t, testSystem(t))
		server := newProbe(t, rt.sys, rt.OnLoop(), nil)
		_, at := listen(server, rt, "127.0.0.1:0", cfg)
		test(t, newProbe(t, rt.sys, rt.OnLoop(), nil), server, rt, at)
	})
}

// Both sides allocate and grant memory before there is a connection. The keys travel in the private
// data of Connect and Accept, and the first operations use them.
func TestMemoryBeforeEstablished(t *testing.T) {
	cfg := IDConfig{Memory: 1 << 12}
	onEveryRoute(t, cfg, func(t testing.TB, client, server *probe, rt *Runtime, at string) {
		c := ready(client, rt, at, cfg)
		near := memory(client, c, 1<<11, rw)
		fill(client, c, near, "of the client")
		client.send(c, &Connect{PrivateData: sent(t, grant(client, c, near))})

		r, s := next[*ConnectRequest](server)
		far := memory(server, s, 1<<11, rw)
		fill(server, s, far, "of the server")
		server.send(s, &Accept{PrivateData: sent(t, grant(server, s, far))})
		next[*Established](server)
		e, _ := next[*Established](client)

		client.send(c, &Read{Key: keyOf(t, e.PrivateData), Memory: near, At: 100, Length: 13})
		server.send(s, &Read{Key: keyOf(t, r.PrivateData), Memory: far, At: 100, Length: 13})
		next[*ReadDone](client)
		next[*ReadDone](server)
		if b := contents(client, c, near)[100:113]; string(b) != "of the server" {
			t.Errorf("the client has read %q", b)
		}
		if b := contents(server, s, far)[100:113]; string(b) != "of the client" {
			t.Errorf("the server has read %q", b)
		}
		client.send(c, &Close{})
		until[*Closed](client)
		until[*Closed](server)
	})
}

// Memory of before the connection is the connection's: it counts, it is taken back, and a key that
// was revoked before the peer could use it is worth nothing.
func TestEarlyMemoryIsTheConnections(t *testing.T) {
	cfg := IDConfig{Memory: 100}
	onEveryRoute(t, cfg, func(t testing.TB, client, server *probe, rt *Runtime, at string) {
		c := ready(client, rt, at, cfg)
		client.send(c, &Connect{})
		_, s := next[*ConnectRequest](server)
		freed, far := memory(server, s, 50, rw), memory(server, s, 30, rw)
		server.send(s, &AllocMemory{Bytes: 21})
		f, _ := next[*CommandFailed](server)
		is(t, f, unix.ENOMEM)
		stale := grant(server, s, freed)
		server.send(s, &FreeMemory{Memory: freed})
		next[*Done](server)
		revoked := grant(server, s, far)
		server.send(s, &Revoke{Memory: far})
		next[*Revoked](server)
		if again := grant(server, s, far); again == revoked || again == stale {
			t.Error("a key that was taken back is granted again")
		}
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		near := memory(client, c, 30, 0)
		client.send(c, &Read{Key: revoked, Memory: near, Length: 30})
		for _, g := range until[*Closed](client) {
			if _, ok := g.msg.(*ReadDone); ok {
				t.Error("a key that was revoked before Accept was good")
			}
		}
		until[*Closed](server)
	})
}

// There is memory only where a connection can follow: not before the route is known, on a listener,
// or where the owner makes the queue pair.
func TestMemoryNeedsAWay(t *testing.T) {
	inWorld(t, infiniband, func(w *world) {
		server, p := w.farProbe(), w.probe()
		lis := w.listen(server, IDConfig{Memory: 100})
		bound := w.rt.CreateID(p.pid, IDConfig{Memory: 100})
		p.send(bound, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
		next[*cmid.Bound](p)
		manual := ready(p, w.rt, there+":7471", IDConfig{Memory: 100, Manual: true})
		for what, id := range map[string]*actor.PID{"idle": w.rt.CreateID(p.pid, IDConfig{Memory: 100}), "bound": bound, "listening": lis, "manual": manual} {
			p.send(id, &AllocMemory{Bytes: 1})
			if f, _ := next[*CommandFailed](p); !errors.Is(f, unix.ENOTCONN) {
				w.Errorf("%s: %v", what, f)
			}
		}
		none := ready(p, w.rt, there+":7471", IDConfig{})
		p.send(none, &AllocMemory{Bytes: 1})
		f, _ := next[*CommandFailed](p)
		is(w, f, unix.ENOMEM)
	})
}

// However a request or an attempt ends, its memory goes with it, and its handle reports that.
func TestEarlyMemoryEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, client, server *probe, c, s *actor.PID){
		"rejected":             func(_ *world, _, server *probe, _, s *actor.PID) { server.send(s, &Reject{}) },
		"destroyed":            func(_ *world, _, server *probe, _, s *actor.PID) { server.send(s, &DestroyID{}) },
		"the peer gives up":    func(_ *world, client, _ *probe, c, _ *actor.PID) { client.send(c, &DestroyID{}) },
		"nobody answers":       func(*world, *probe, *probe, *actor.PID, *actor.PID) { time.Sleep(time.Minute) },
		"the actor is stopped": func(w *world, _, _ *probe, _, s *actor.PID) { w.sys.Root.Stop(s) },
		"the device goes":      func(w *world, _, _ *probe, _, _ *actor.PID) { w.f.RemoveDevice("mem1") },
		"the owner dies":       func(w *world, _, server *probe, _, _ *actor.PID) { w.sys.Root.Stop(server.pid) },
	} {
		t.Run(name, func(t *testing.T) {
			onAllDevices(t, func(w *world) {
				cfg := IDConfig{Memory: 100}
				server, client := w.farProbe(), w.probe()
				w.listen(server, cfg)
				c := ready(client, w.rt, there+":7471", cfg)
				memory(client, c, 100, rw)
				client.send(c, &Connect{})
				_, s := next[*ConnectRequest](server)
				m := memory(server, s, 100, rw)
				grant(server, s, m)
				end(w, client, server, c, s)
				time.Sleep(time.Minute)
				client.send(c, &DestroyID{}) // some ends are not reported to a peer that waits
				time.Sleep(time.Minute)
				settle()
				for _, rt := range []*Runtime{w.rt, w.far} {
					w.onLoop(rt, func(l *loop) {
						if l.MemoryBudget != rt.cfg.Limits.Memory {
							w.Errorf("%d bytes are not given back", rt.cfg.Limits.Memory-l.MemoryBudget)
						}
						if _, err := m.ReadAt(make([]byte, 1), 0); rt == w.far && !errors.Is(err, ErrMemoryGone) {
							w.Errorf("the handle: %v", err)
						}
					})
				}
			})
		})
	}
}

// Shutdown finds memory of unanswered requests, and of unused routes.
func TestShutdownWithEarlyMemory(t *testing.T) {
	onAllDevices(t, func(w *world) {
		cfg := IDConfig{Memory: 100}
		server, client := w.farProbe(), w.probe()
		w.listen(server, cfg)
		memory(client, ready(client, w.rt, there+":7471", cfg), 100, rw)
		c := ready(client, w.rt, there+":7471", cfg)
		memory(client, c, 100, rw)
		client.send(c, &Connect{})
		_, s := next[*ConnectRequest](server)
		memory(server, s, 100, rw)
	})
}

// A key that was granted before Accept lets the peer notify this side immediately.
func TestEarlyGrantLetsThePeerNotify(t *testing.T) {
	onImmediates(t, func(w *world) {
		cfg := IDConfig{Memory: 100}
		server, client := w.farProbe(), w.probe()
		w.listen(server, cfg)
		c := w.rt.CreateID(client.pid, cfg)
		client.send(c, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{PrivateData: sent(w, grant(server, s, memory(server, s, 100, rw)))})
		next[*Established](server)
		e, _ := next[*Established](client)
		near, notes := memory(client, c, 100, 0), server.noteAll(nil)
		client.send(c, &Write{Memory: near, Length: 100, Key: keyOf(w, e.PrivateData), HasImm: true, Imm: 9})
		next[*Received](server)
		settle()
		if m := (*notes)[0]; !m.HasImm || m.Imm != 9 || m.Written != 100 {
			w.Errorf("notified of %d bytes, immediate %d", m.Written, m.Imm)
		}
		next[*WriteDone](client)
	})
}

// In a secured mode the key travels sealed, and a request's owner can grant once its peer is
// authenticated. What Security.AllowOneSided does not name is refused as early.
func TestEarlyMemorySecured(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		cfg := secured(w)
		cfg.Memory, cfg.Security.AllowOneSided = 200, RemoteRead
		server, client := w.farProbe(), w.probe()
		w.listen(server, cfg)
		c := ready(client, w.rt, there+":7471", cfg)
		near := memory(client, c, 100, RemoteRead)
		fill(client, c, near, "client")
		client.send(c, &AllocMemory{Bytes: 1, Access: RemoteWrite})
		f, _ := next[*CommandFailed](client)
		is(w, f, ErrSecured)
		client.send(c, &Connect{PrivateData: sent(w, grant(client, c, near))})
		r, s := next[*ConnectRequest](server)
		far := memory(server, s, 100, RemoteRead)
		fill(server, s, far, "server")
		server.send(s, &Accept{PrivateData: sent(w, grant(server, s, far))})
		next[*Established](server)
		e, _ := next[*Established](client)
		client.send(c, &Read{Key: keyOf(w, e.PrivateData), Memory: near, At: 10, Length: 6})
		server.send(s, &Read{Key: keyOf(w, r.PrivateData), Memory: far, At: 10, Length: 6})
		next[*ReadDone](client)
		next[*ReadDone](server)
		if a, b := contents(client, c, near), contents(server, s, far); string(a[10:16]) != "server" || string(b[10:16]) != "client" {
			w.Errorf("read %q and %q", a[10:16], b[10:16])
		}
	})
}
