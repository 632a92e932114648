package actor

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
)

// alice is an identity with a key.
func credential(name string, key byte) Credential {
	c := Credential{Identity: name}
	for i := range c.Key {
		c.Key[i] = key + byte(i)
	}
	return c
}

// psk returns a Security for both sides, which have the key of alice.
func psk(tb testing.TB) *Security {
	tb.Helper()
	k := new(Keyring)
	if err := errors.Join(k.Use(credential("alice", 1)), k.Accept(credential("alice", 1))); err != nil {
		tb.Fatal(err)
	}
	return &Security{Mode: PSK, Keys: k}
}

func secured(tb testing.TB) IDConfig { return IDConfig{Security: psk(tb)} }

func TestSecuredConversation(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server, secured(w))
		c := w.rt.CreateID(client.pid, secured(w))
		client.send(c, &Dial{Addr: there + ":7471", PrivateData: bytes.Repeat([]byte("q"), 255)})
		r, s := next[*ConnectRequest](server)
		if r.Identity != "alice" || string(r.PrivateData) != string(bytes.Repeat([]byte("q"), 255)) || r.Foreign {
			w.Errorf("the request is %+v", r)
		}
		server.send(s, &Accept{PrivateData: bytes.Repeat([]byte("a"), 255)})
		es, _ := next[*Established](server)
		ec, _ := next[*Established](client)
		if ec.Identity != "alice" || es.Identity != "alice" || string(ec.PrivateData) != string(bytes.Repeat([]byte("a"), 255)) {
			w.Errorf("established: %+v, %+v", es, ec)
		}
		if ec.MaxMessage < 16<<10 || es.MaxMessage != ec.MaxMessage {
			w.Errorf("messages of %d and %d bytes", es.MaxMessage, ec.MaxMessage)
		}
		for i := range 300 {
			p := bytes.Repeat([]byte{byte(i)}, i*i%ec.MaxMessage)
			client.send(c, NewSend(p))
			if g := server.any(); g.data != string(p) {
				w.Fatalf("message %d is %v", i, g)
			}
			server.send(s, NewSend(p))
			if g := client.any(); g.data != string(p) {
				w.Fatalf("message %d back is %v", i, g)
			}
		}
		p := bytes.Repeat([]byte{7}, ec.MaxMessage)
		client.send(c, NewSend(p))
		if g := server.any(); g.data != string(p) {
			w.Fatalf("the largest message is %v", g)
		}
		client.send(c, NewSend(append(p, 1)))
		f, _ := next[*SendFailed](client)
		is(w, f, ErrTooLarge)
		client.send(c, &Close{})
		for _, side := range []*probe{server, client} {
			end := until[*Closed](side)
			cl := end[len(end)-1].msg.(*Closed)
			if cl.Err != nil || cl.Unknown+cl.Unsent > 1 {
				w.Errorf("the end: %v", end)
			}
		}
	})
}

func TestSecuredRejectReasonReachesThePeer(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		server, client := w.farProbe(), w.probe()
		w.listen(server, secured(w))
		c := w.rt.CreateID(client.pid, secured(w))
		client.send(c, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Reject{PrivateData: []byte("not today")})
		if end := until[*Closed](server); kinds(end) != "Closed" || end[0].msg.(*Closed).Err != nil {
			w.Errorf("the server's end: %v", end)
		}
		f, _ := next[*Rejected](client)
		if string(f.PrivateData) != "not today" {
			w.Errorf("rejected: %+v", f)
		}
		next[*Closed](client)
		client.quiet()
	})
}

// refusals are pairs of sides that have to refuse each other.
func TestDowngradeIsRefused(t *testing.T) {
	other := func(change func(*Security)) func(w *world) IDConfig {
		return func(w *world) IDConfig {
			c := secured(w)
			change(c.Security)
			return c
		}
	}
	secure := other(func(*Security) {})
	insecure := func(*world) IDConfig { return IDConfig{} }
	raw := func(*world) IDConfig { return IDConfig{Raw: true} }
	certified := func(w *world) IDConfig { return IDConfig{Security: mtls(w)} } // an authority each
	key := func(c Credential) func(w *world) IDConfig {
		return other(func(s *Security) {
			if err := errors.Join(s.Keys.Use(c), s.Keys.Accept(c)); err != nil {
				panic(err)
			}
		})
	}
	for name, tt := range map[string]struct{ server, client func(*world) IDConfig }{
		"the client is not secured":     {secure, insecure},
		"the server is not secured":     {insecure, secure},
		"the client is raw":             {secure, raw},
		"another key":                   {secure, key(credential("alice", 2))},
		"another identity":              {secure, key(credential("bob", 1))},
		"one side leaves out addresses": {secure, other(func(s *Security) { s.NoAddresses = true })},
		"the server has no keys":        {other(func(s *Security) { s.Keys = new(Keyring) }), secure},
		"TLS, not secured":              {certified, insecure},
		"TLS, PSK":                      {certified, secure},
		"TLS, raw":                      {certified, raw},
		"TLS, another authority":        {certified, certified},
		"not secured, TLS":              {insecure, certified},
		"PSK, TLS":                      {secure, certified},
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				server, client := w.farProbe(), w.probe()
				lis := w.listen(server, tt.server(w))
				c := w.rt.CreateID(client.pid, tt.client(w))
				client.send(c, &Dial{Addr: there + ":7471"})
				end := until[*Closed](client)
				if f, ok := end[0].msg.(Failure); !ok {
					w.Errorf("the client gets %v", end)
				} else if tt.client(w).Security != nil {
					is(w, f, unix.EACCES)
				}
				settle()
				server.quiet()
				for _, i := range w.far.Inspect() {
					if i.PID.Equal(lis) && i.Listener.Refused.Unauthenticated != 1 {
						w.Errorf("the listener's counts: %+v", i.Listener)
					}
				}
			})
		})
	}
}

// A server that is not secured may also be raw, and accept. Then it is the client that refuses.
func TestRawServerIsRefused(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		server, client := w.farProbe(), w.probe()
		w.listen(server, IDConfig{Raw: true})
		c := w.rt.CreateID(client.pid, secured(w))
		client.send(c, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		end := until[*Closed](client)
		f, ok := end[0].msg.(*CommandFailed)
		if !ok || len(end) != 2 {
			w.Fatalf("the client gets %v", end)
		}
		is(w, f, unix.EACCES)
		until[*Closed](server)
	})
}

func TestKeysRotate(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		old, young := credential("alice", 1), credential("alice", 50)
		cfg := secured(w)
		keys := cfg.Security.Keys
		server, client := w.farProbe(), w.probe()
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Accept{})
			}
		})
		w.listen(server, cfg)
		dial := func(want bool) {
			w.Helper()
			c := w.rt.CreateID(client.pid, cfg)
			client.send(c, &Dial{Addr: there + ":7471"})
			if _, ok := client.any().msg.(*Established); ok != want {
				w.Fatalf("established is %v", ok)
			}
			if !want {
				until[*Closed](client)
			}
		}
		check := func(err error) {
			if err != nil {
				w.Fatal(err)
			}
		}
		dial(true)
		check(keys.Accept(old, young))
		dial(true)
		check(keys.Use(young))
		dial(true)
		check(keys.Accept(young))
		dial(true)
		check(keys.Use(old))
		dial(false)
		if err := keys.Accept(old, young, credential("alice", 70)); !errors.Is(err, unix.EINVAL) {
			w.Errorf("three keys: %v", err)
		}
		if err := keys.Use(Credential{}); !errors.Is(err, unix.EINVAL) {
			w.Errorf("no identity: %v", err)
		}
	})
}

// A key that is removed opens nothing more, also if its handshake has begun, or waits for its
// owner's decision, when it is removed.
func TestRemovedKeyOpensNothing(t *testing.T) {
	request := wire.TypeRequest.Put(nil)
	onFlavors(t, func(w *world) {
		server, cfg := w.farProbe(), secured(w)
		remove := func() {
			if err := cfg.Security.Keys.Accept(credential("bob", 9)); err != nil {
				w.Fatal(err)
			}
		}
		w.listen(server, cfg)
		late, waits := w.handshake(credential("alice", 1)), w.handshake(credential("alice", 1))
		waits.say(request)
		_, s := next[*ConnectRequest](server)
		remove()
		late.say(request)
		until[*Closed](late.probe)
		settle()
		server.quiet()

		server.send(s, &Accept{})
		end := until[*Closed](server)
		if kinds(end) != "CommandFailed Closed" {
			w.Errorf("the owner gets %v", end)
		}
		for _, g := range end {
			if f, ok := g.msg.(Failure); ok {
				is(w, f, unix.EACCES)
			}
		}
		until[*Closed](waits.probe)
		w.unauthenticated(1)
		if n := w.far.count.Load(); n != 1 {
			w.Errorf("%d identifiers are left, want the listener", n)
		}
	})
}

// An owner that does not answer in time costs its peer the connection, and no other peer anything.
func TestSecuredOwnerIsLate(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		server, client := w.farProbe(), w.probe()
		lis := w.listen(server, secured(w))
		c := w.rt.CreateID(client.pid, secured(w))
		client.send(c, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		cl, _ := next[*Closed](server)
		is(w, cl.Err, unix.ETIMEDOUT)
		next[*Rejected](client)
		next[*Closed](client)
		server.send(s, &Accept{})
		settle()
		for _, i := range w.far.Inspect() {
			if i.PID.Equal(lis) && (i.Listener.TimedOut != 1 || i.Listener.Pending != 0) {
				w.Errorf("the listener's counts: %+v", i.Listener)
			}
		}
	})
}

// Whatever ends a request before it is answered, the peer is rejected, and gets one answer.
func TestSecuredRequestIsDropped(t *testing.T) {
	for _, cmd := range []Command{&DestroyID{}, &Close{}, &Disconnect{}, &Reject{}} {
		t.Run(opName(cmd), func(t *testing.T) {
			onSecured(t, func(w *world, secured mode) {
				server, client := w.farProbe(), w.probe()
				w.listen(server, secured(w))
				c := w.rt.CreateID(client.pid, secured(w))
				client.send(c, &Dial{Addr: there + ":7471"})
				_, s := next[*ConnectRequest](server)
				server.send(s, cmd)
				until[*Closed](server)
				end := until[*Closed](client)
				if _, ok := end[0].msg.(Failure); !ok || len(end) != 2 {
					w.Errorf("the client gets %v", end)
				}
			})
		})
	}
}

func TestAuthorize(t *testing.T) {
	for name, tt := range map[string]struct {
		authorize func(r *ConnectRequest) *Reject
		reject    string
	}{
		"accepts": {func(r *ConnectRequest) *Reject {
			if r.Peer.Addr().String() != here || string(r.PrivateData) != "let me in" {
				return &Reject{}
			}
			return nil
		}, ""},
		"rejects":  {func(r *ConnectRequest) *Reject { return &Reject{PrivateData: []byte("no " + r.Identity)} }, "no alice"},
		"panics":   {func(*ConnectRequest) *Reject { panic("authorize") }, ""},
		"too long": {func(*ConnectRequest) *Reject { return &Reject{PrivateData: make([]byte, 256)} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onSecured(t, func(w *world, secured mode) {
				server, client := w.farProbe(), w.probe()
				cfg := secured(w)
				cfg.Security.Authorize = func(r *ConnectRequest) (PeerLimits, *Reject) { return PeerLimits{}, tt.authorize(r) }
				w.listen(server, cfg)
				c := w.rt.CreateID(client.pid, secured(w))
				client.send(c, &Dial{Addr: there + ":7471", PrivateData: []byte("let me in")})
				if name == "accepts" {
					_, s := next[*ConnectRequest](server)
					server.send(s, &Accept{})
					next[*Established](client)
					return
				}
				end := until[*Closed](client)
				r, ok := end[0].msg.(*Rejected)
				if name == "exits" { // and the actor, which would have rejected it
					_, ok = end[0].msg.(Failure)
				} else if ok {
					ok = string(r.PrivateData) == tt.reject
				}
				if !ok || len(end) != 2 {
					w.Errorf("the client gets %v", end)
				}
				settle()
				server.quiet()
			})
		})
	}
}

// Handlers and Route are for peers that are authenticated.
func TestSecuredRouteAndHandler(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		server, client, routed := w.farProbe(), w.probe(), w.farProbe()
		cfg := secured(w)
		calls := 0
		cfg.Route = func(r *ConnectRequest) (*actor.PID, *Reject) {
			calls++
			if r.Identity != "alice" || string(r.PrivateData) != "hello" {
				w.Errorf("Route gets %+v", r)
			}
			return routed.pid, nil
		}
		w.listen(server, cfg)
		c := w.rt.CreateID(client.pid, secured(w))
		client.send(c, &Dial{Addr: there + ":7471", PrivateData: []byte("hello")})
		_, s := next[*ConnectRequest](routed)
		routed.send(s, &Accept{})
		next[*Established](routed)
		next[*Established](client)
		w.rt.CreateID(nil, IDConfig{})
		if calls != 1 {
			w.Errorf("Route was called %d times", calls)
		}
		spawned := make(chan struct{}, 1)
		cfg.Route = nil
		cfg.Handler = actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				spawned <- struct{}{}
				ctx.Respond(&Accept{})
			}
		})
		lis, at := listen(server, w.far, there+":7472", cfg)
		_ = lis
		for _, id := range []IDConfig{{}, secured(w)} {
			x := w.probe()
			x.send(w.rt.CreateID(x.pid, id), &Dial{Addr: at})
			_, ok := x.any().msg.(*Established)
			if want := id.Security != nil; ok != want || (len(spawned) == 1) != want {
				w.Errorf("secured: %v, established: %v, handlers: %d", want, ok, len(spawned))
			}
		}
	})
}

// One-sided operations are refused unless they are allowed, on either side.
func TestSecuredOneSided(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		cfg := secured(w)
		cfg.Memory = 1 << 20
		p := w.connect(cfg)
		p.client.send(p.c, &AllocMemory{Bytes: 100})
		m, _ := next[*MemoryAllocated](p.client)
		p.client.send(p.c, &AllocMemory{Bytes: 100, Access: RemoteRead})
		f, _ := next[*CommandFailed](p.client)
		is(w, f, ErrSecured)
		p.client.send(p.c, &Read{Key: RemoteKey{Length: 10, Rights: RemoteRead}, Memory: m.Memory, Length: 10})
		a, _ := next[*AccessError](p.client)
		is(w, a, ErrSecured)
		is(w, a, unix.EPERM)
	})
	onSecured(t, func(w *world, secured mode) {
		cfg := secured(w)
		cfg.Memory, cfg.Security.AllowOneSided = 1<<20, RemoteRead
		p := w.connect(cfg)
		p.server.send(p.s, &AllocMemory{Bytes: 100, Access: RemoteRead})
		theirs, _ := next[*MemoryAllocated](p.server)
		p.server.send(p.s, &Grant{Memory: theirs.Memory})
		g, _ := next[*Granted](p.server)
		p.client.send(p.c, &AllocMemory{Bytes: 100})
		m, _ := next[*MemoryAllocated](p.client)
		p.client.send(p.c, &Read{Key: g.Key, Memory: m.Memory, Length: 10})
		next[*ReadDone](p.client)
		p.client.send(p.c, &Write{Key: g.Key, Memory: m.Memory, Length: 10})
		a, _ := next[*AccessError](p.client)
		is(w, a, ErrSecured)
	})
}

// Identifiers that cannot be secured are refused, with the reason.
func TestSecurityConfig(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		for reason, change := range map[string]func(*IDConfig){
			"a Raw identifier":       func(c *IDConfig) { c.Raw = true },
			"a Manual identifier":    func(c *IDConfig) { c.Manual = true },
			"needs Security.Keys":    func(c *IDConfig) { c.Security.Keys = nil },
			"there is no ":           func(c *IDConfig) { c.Security.Mode = 9 },
			"Security.AllowOneSided": func(c *IDConfig) { c.Security.AllowOneSided = LocalWrite },
		} {
			p, cfg := w.probe(), secured(w)
			change(&cfg)
			w.rt.CreateID(p.pid, cfg)
			cl, _ := next[*Closed](p)
			if !errors.Is(cl.Err, unix.EINVAL) || !strings.Contains(fmt.Sprint(cl.Err), reason) {
				w.Errorf("%v, want %q", cl.Err, reason)
			}
		}
		p, cfg := w.probe(), secured(w)
		cfg.Security.Keys = new(Keyring)
		p.send(w.rt.CreateID(p.pid, cfg), &Dial{Addr: there + ":7471"})
		f, _ := next[*CommandFailed](p)
		is(w, f, unix.EINVAL)
		p = w.probe()
		p.send(w.rt.CreateID(p.pid, secured(w)), &Dial{Addr: there + ":7471", PrivateData: make([]byte, 256)})
		f, _ = next[*CommandFailed](p)
		is(w, f, unix.EINVAL)
	})
}

// A runtime's Security is that of its identifiers, unless they have another.
func TestSecurityOfTheRuntime(t *testing.T) {
	sec := psk(t)
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		for _, i := range append(w.rt.Inspect(), w.far.Inspect()...) {
			if i.Wire == "messages" && (i.Security == "" || i.Identity != "alice") {
				w.Errorf("inspected: %+v", i)
			}
		}
		server, client := w.farProbe(), w.probe()
		_, at := listen(server, w.far, there+":7472", IDConfig{Security: &Security{}})
		client.send(w.rt.CreateID(client.pid, IDConfig{Security: &Security{}}), &Dial{Addr: at})
		if r, _ := next[*ConnectRequest](server); r.Identity != "" {
			w.Errorf("the request is %+v", r)
		}
		_ = p
	}, Config{Security: sec})
}

func TestSecuredEmbedded(t *testing.T) {
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		sys := testSystem(t)
		rt := openIWARP(t, sys)
		for name, where := range wheres(rt) {
			t.Run(name, func(t *testing.T) {
				p := connect(t, rt, newProbe(t, sys, where, nil), newProbe(t, sys, where, nil), IDConfig{Security: made(t)})
				for i := range 1000 {
					b := bytes.Repeat([]byte{byte(i)}, i*67%(64<<10))
					p.client.send(p.c, NewSend(b))
					if g := p.server.any(); g.data != string(b) {
						t.Fatalf("message %d is %v", i, g)
					}
				}
				p.server.send(p.s, &Close{})
				if end := until[*Closed](p.client); end[len(end)-1].msg.(*Closed).Err != nil {
					t.Errorf("the end: %v", end)
				}
				until[*Closed](p.server)
			})
		}
	})
}

// Keys change while messages flow in both directions, without an effect on them.
func TestKeyUpdates(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		cfg := secured(w)
		cfg.rekey = 1500
		p := w.connect(cfg)
		for i := range 4000 {
			p.client.send(p.c, NewSend(fmt.Append(nil, i)))
			if g := p.server.any(); g.data != fmt.Sprint(i) {
				w.Fatalf("message %d is %v", i, g)
			}
		}
		w.onLoop(w.rt, func(l *loop) {
			if own, _ := w.conn(l, p.c).Sec.KeyUpdates(); own < 2 {
				w.Errorf("the key was changed %d times", own)
			}
		})
	})
}
