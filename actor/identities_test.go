package actor

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// peopled returns a listener's configuration that knows alice and bob.
func peopled(tb testing.TB, limits func(identity string) PeerLimits) IDConfig {
	tb.Helper()
	keys := new(Keyring)
	if err := keys.Accept(credential("alice", 1), credential("bob", 2)); err != nil {
		tb.Fatal(err)
	}
	cfg := IDConfig{Memory: 1 << 16, Security: &Security{Mode: PSK, Keys: keys, AllowOneSided: remoteRights}}
	if limits != nil {
		cfg.Security.Authorize = func(r *ConnectRequest) (PeerLimits, *Reject) { return limits(r.Identity), nil }
	}
	return cfg
}

// connecting returns the configuration of a client with that name's key.
func connecting(tb testing.TB, name string) IDConfig {
	tb.Helper()
	keys := new(Keyring)
	if err := keys.Use(credential(name, map[string]byte{"alice": 1, "bob": 2}[name])); err != nil {
		tb.Fatal(err)
	}
	return IDConfig{Security: &Security{Mode: PSK, Keys: keys}}
}

// accepter listens there, and accepts all.
func (w *world) accepter(cfg IDConfig) (listener *actor.PID) {
	w.Helper()
	accept := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Accept{})
		}
	}, w.far.OnLoop())
	listener = w.far.CreateID(w.sys.Root.Spawn(accept), cfg)
	if _, err := Ask[*Listening](w.Context(), w.far, listener, &Serve{Addr: there + ":7471"}); err != nil {
		w.Fatal(err)
	}
	return listener
}

// comes connects as name. ok: the peer has accepted; otherwise it has refused, because of limits.
func (w *world) comes(name string) (id *actor.PID, ok bool) {
	w.Helper()
	p := w.probe()
	id = w.rt.CreateID(p.pid, connecting(w, name))
	p.send(id, &Dial{Addr: there + ":7471"})
	switch e := p.any().msg.(type) {
	case *Established:
		return id, true
	case *Rejected:
		if !errors.Is(e, ErrPeerLimits) || !errors.Is(e, unix.EUSERS) || !errors.Is(e, unix.ECONNREFUSED) || e.PrivateData != nil {
			w.Errorf("%s is refused: %v", name, e)
		}
		next[*Closed](p)
	default:
		w.Fatalf("%s gets %v", name, e)
	}
	return id, false
}

// crowd connects as name until it is refused, and counts.
func (w *world) crowd(name string, most int) (n int) {
	w.Helper()
	for n < most {
		if _, ok := w.comes(name); !ok {
			break
		}
		n++
	}
	return n
}

func TestConnectionsOfAnIdentity(t *testing.T) {
	onFlavors(t, func(w *world) {
		l := w.accepter(peopled(w, func(identity string) PeerLimits {
			if identity == "alice" {
				return PeerLimits{Connections: 2}
			}
			return PeerLimits{}
		}))
		first, _ := w.comes("alice")
		if n := 1 + w.crowd("alice", 10); n != 2 {
			w.Errorf("alice has %d connections", n)
		}
		if n := w.crowd("bob", 10); n != 10 {
			w.Errorf("bob has %d connections beside her", n)
		}
		w.sys.Root.Send(first, &Close{})
		settle()
		time.Sleep(time.Second)
		if n := w.crowd("alice", 10); n != 1 {
			w.Errorf("alice gets %d more when one has ended", n)
		}
		for _, i := range w.far.Inspect() {
			if i.PID.Equal(l) && (i.Listener.Refused.Identity != 2 || i.Listener.Pending != 0) {
				w.Errorf("the listener's counts: %+v", i.Listener)
			}
		}
	})
}

// Without separate limits, an identity leaves room for others.
func TestIdentitiesShareConnections(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.accepter(peopled(w, nil))
		alice, bob := w.crowd("alice", 64), w.crowd("bob", 64)
		if alice < 28 || alice > 32 || bob < 14 || bob > 16 {
			w.Errorf("of 64 places alice has %d, bob %d", alice, bob)
		}
	}, Config{Limits: Limits{Connections: 64}})
}

func TestConnectRateOfAnIdentity(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.accepter(peopled(w, func(string) PeerLimits { return PeerLimits{ConnectRate: 1} }))
		time.Sleep(time.Second)
		for _, step := range []struct {
			name string
			wait time.Duration
			want int
		}{{"alice", 0, 4}, {"bob", 0, 4}, {"alice", 2 * time.Second, 2}} {
			time.Sleep(step.wait)
			if n := w.crowd(step.name, 10); n != step.want {
				w.Errorf("after %v %s comes %d times, want %d", step.wait, step.name, n, step.want)
			}
		}
	})
}

func TestOneSidedOfAnIdentity(t *testing.T) {
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		w.listen(server, peopled(w, func(identity string) PeerLimits {
			if identity == "alice" {
				return PeerLimits{DenyOneSided: RemoteWrite}
			}
			return PeerLimits{}
		}))
		for _, tt := range []struct {
			name   string
			rights Access
			denied bool
		}{{"alice", RemoteRead, false}, {"alice", RemoteWrite, true}, {"bob", RemoteWrite, false}} {
			client := w.probe()
			client.send(w.rt.CreateID(client.pid, connecting(w, tt.name)), &Dial{Addr: there + ":7471"})
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			server.send(s, &AllocMemory{Bytes: 4096, Access: tt.rights})
			switch e := server.any().msg.(type) {
			case *MemoryAllocated:
				if tt.denied {
					w.Errorf("%s may be granted %v", tt.name, tt.rights)
				}
			case Failure:
				if !tt.denied || !errors.Is(e, ErrSecured) {
					w.Errorf("%s may not be granted %v: %v", tt.name, tt.rights, e)
				}
			}
		}
	})
}

// The hook's limits for one peer are for that peer: by its address, or its private data, too.
func TestLimitsOfOnePeer(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		cfg := peopled(w, nil)
		cfg.Security.Authorize = func(r *ConnectRequest) (l PeerLimits, _ *Reject) {
			if string(r.PrivateData) == "guest" {
				l.DenyOneSided = RemoteWrite
			}
			return l, nil
		}
		w.listen(server, cfg)
		for _, says := range []string{"guest", "host", "guest"} {
			client.send(w.rt.CreateID(client.pid, connecting(w, "alice")), &Dial{Addr: there + ":7471", PrivateData: []byte(says)})
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			server.send(s, &AllocMemory{Bytes: 4096, Access: RemoteWrite})
			if _, granted := server.any().msg.(*MemoryAllocated); granted != (says == "host") {
				w.Errorf("a %s may be granted %v: %t", says, RemoteWrite, granted)
			}
		}
	})
}

// A failure of the user's Authorize ends one request, and no other.
func TestLimitsFail(t *testing.T) {
	for name, fail := range map[string]func(){"panics": func() { panic("limits") }} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				w.accepter(peopled(w, func(identity string) PeerLimits {
					if identity == "alice" {
						fail()
					}
					return PeerLimits{}
				}))
				p := w.probe()
				p.send(w.rt.CreateID(p.pid, connecting(w, "alice")), &Dial{Addr: there + ":7471"})
				if end := until[*Closed](p); len(end) != 2 {
					w.Errorf("alice gets %v", end)
				}
				if _, ok := w.comes("bob"); !ok {
					w.Error("bob is refused")
				}
			})
		})
	}
}
