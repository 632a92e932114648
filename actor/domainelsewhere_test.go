package actor

import (
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// A connection that does not fit into the domain gets an error with advice. When the others have
// left, it fits.
func TestDomainElsewhere(t *testing.T) {
	onFlavors(t, func(w *world) {
		const otherDevice = "10.0.0.6"
		w.f.AddDevice("mem2", otherDevice)
		server := w.farProbe()
		w.listen(server, IDConfig{Memory: 100})
		cfg := IDConfig{Memory: 100, Domain: new(Domain)}
		p, q := w.probe(), w.probe() // on two loops
		dial := func(p *probe, cfg IDConfig, d *Dial) *actor.PID {
			d.Addr = there + ":7471"
			id := w.rt.CreateID(p.pid, cfg)
			p.send(id, d)
			return id
		}
		accept := func(p *probe) {
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			next[*Established](p)
		}
		first := dial(p, cfg, &Dial{})
		accept(p)
		refused := func(p *probe, cfg IDConfig, d *Dial, want, errno error) {
			w.Helper()
			dial(p, cfg, d)
			f, _ := next[*CommandFailed](p)
			is(w, f, want)
			is(w, f, errno)
			if errors.Is(want, ErrDomainElsewhere) && !contains(f.Error(), "OnLoop") {
				w.Errorf("it does not say what to do: %v", f)
			}
			next[*Closed](p)
		}
		refused(q, cfg, &Dial{}, ErrDomainElsewhere, unix.EXDEV)
		refused(p, cfg, &Dial{Src: MustAddr(otherDevice + ":0")}, ErrDomainElsewhere, unix.EXDEV)
		p.send(first, &Close{})
		until[*Closed](p)
		until[*Closed](server)
		dial(q, cfg, &Dial{Src: MustAddr(otherDevice + ":0")})
		accept(q)
		refused(p, cfg, &Dial{}, ErrDomainElsewhere, unix.EXDEV)
	}, Config{Loops: make([]eventloop.Config, 2)})
}

// Connections that allow different one-sided operations do not meet: through one of them a peer
// could do to the other's memory what that one forbids.
func TestDomainOfDifferentSecurity(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		cfg := secured(w)
		cfg.Memory, cfg.Security.AllowOneSided = 200, rw
		server, client := w.farProbe(), w.probe()
		w.listen(server, cfg)
		cfg.Domain = new(Domain)
		dial := func(allow Access) *actor.PID {
			own, sec := cfg, *cfg.Security
			own.Security, sec.AllowOneSided = &sec, allow
			id := w.rt.CreateID(client.pid, own)
			client.send(id, &Dial{Addr: there + ":7471"})
			return id
		}
		accept := func() {
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			next[*Established](client)
		}
		id := dial(rw)
		accept()
		m := memory(client, id, 100, rw)
		dial(RemoteRead)
		f, _ := next[*CommandFailed](client)
		is(w, f, unix.EINVAL)
		next[*Closed](client)
		sibling := dial(rw)
		accept()
		grant(client, sibling, m)
	})
}

// A peer whose identity allows it less than the other connections of a domain does not get in: its
// connection could reach memory that was granted to the others.
func TestDomainOfDifferentIdentities(t *testing.T) {
	onAllKinds(t, func(w *world) {
		server := w.farProbe()
		cfg := peopled(w, func(identity string) PeerLimits {
			if identity == "bob" {
				return PeerLimits{DenyOneSided: RemoteWrite}
			}
			return PeerLimits{}
		})
		cfg.Domain = new(Domain)
		w.listen(server, cfg)
		come := func(name string) pair {
			p, own := pair{client: w.probe(), server: server}, connecting(w, name)
			own.Memory, own.Security.AllowOneSided = 100, rw
			p.c = w.rt.CreateID(p.client.pid, own)
			p.client.send(p.c, &Dial{Addr: there + ":7471"})
			_, p.s = next[*ConnectRequest](server)
			return p
		}
		alice := come("alice")
		server.send(alice.s, &Accept{})
		next[*Established](server)
		next[*Established](alice.client)
		m := memory(server, alice.s, 100, rw)
		bob := come("bob")
		for _, cmd := range []Command{&Grant{Memory: m}, &AllocMemory{Bytes: 1}, &Accept{}} {
			server.send(bob.s, cmd)
			f, ok := server.any().msg.(*CommandFailed)
			if !ok {
				w.Fatalf("%T is done", cmd)
			}
			is(w, f, unix.EINVAL)
		}
		server.send(bob.s, &Reject{})
		next[*Closed](server)
		until[*Closed](bob.client)
		put(alice, grant(server, alice.s, m), "by alice")
	})
}

// An Accept that does not fit leaves the request to its owner, which can still reject it.
func TestDomainOfScatteredRequests(t *testing.T) {
	onFlavors(t, func(w *world) {
		owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
		w.listen(owner, IDConfig{Memory: 100, Domain: new(Domain)})
		p := w.probe()
		var ids []*actor.PID
		for range 3 { // one of them is on another loop than the first
			id := w.rt.CreateID(p.pid, IDConfig{})
			p.send(id, &Dial{Addr: there + ":7471"})
			_, s := next[*ConnectRequest](owner)
			ids = append(ids, s)
		}
		accepted, rejected := 0, 0
		for _, s := range ids {
			owner.send(s, &Accept{})
			switch m := owner.any().msg.(type) {
			case *Established:
				accepted++
				next[*Established](p)
			case *CommandFailed:
				is(w, m, ErrDomainElsewhere)
				rejected++
				owner.send(s, &Reject{})
				next[*Closed](owner)
				until[*Closed](p)
			default:
				w.Fatalf("Accept is answered with %T", m)
			}
		}
		if accepted == 0 || rejected == 0 {
			w.Errorf("%d accepted, %d refused", accepted, rejected)
		}
	}, Config{Loops: make([]eventloop.Config, 2)})
}
