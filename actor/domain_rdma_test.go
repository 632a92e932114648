//go:build linux && rdma

package actor

import (
	"context"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
)

// On a kernel's device connections of one domain share memory, and their receives are in that
// domain, too: messages and large messages go on, one connection ends and the memory stays, and a
// Revoke takes it from all.
func TestKernelDomain(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	at := env(t, "RDMA_ADDR") + ":0"
	cfg := IDConfig{Memory: 1 << 16, MaxMessage: 1 << 20}
	d := shareDomain(t, rt, rt, at, at, cfg)
	p, q, r := d.join(cfg), d.join(cfg), d.join(cfg)

	shared := memory(p.server, p.s, 1<<15, rw)
	key := grant(p.server, p.s, shared)
	put(p, key, "by the first peer")
	if got := have(q, key, 17); got != "by the first peer" {
		t.Errorf("the second peer reads %q", got)
	}
	theirs := grant(q.client, q.c, memory(q.client, q.c, 1<<12, rw))
	q.server.send(q.s, &Write{Memory: shared, Length: 17, Key: theirs})
	next[*WriteDone](q.server)
	for _, p := range []pair{p, q, r} {
		p.client.send(p.c, NewSend(make([]byte, 1<<20)))
		if g := p.server.any(); len(g.data) != 1<<20 {
			t.Errorf("a large message is %v", g)
		}
	}
	costs(join(t, rt, d.server, d.outside, cfg), key)

	p.server.send(p.s, &Close{})
	until[*Closed](p.server)
	until[*Closed](p.client)
	put(q, key, "later")
	if got := have(r, key, 5); got != "later" {
		t.Errorf("when the connection is gone that has allocated it the memory holds %q", got)
	}
	r.server.send(r.s, &Revoke{Memory: shared})
	next[*Revoked](r.server)
	costs(q, key)
	r.client.send(r.c, &Close{})
	until[*Closed](r.client)
	until[*Closed](r.server)
	if d.home != nil {
		t.Error("the domain is not empty")
	}
	if err := rt.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// A stranger in the middle of a handshake that knows a key of the domain reaches nothing, if queue
// pairs have access rights. If they have none it does: docs/security.md describes that.
func TestKernelStranger(t *testing.T) {
	securedKernel(t, func(t *testing.T, cfg IDConfig) {
		cfg.Memory, cfg.Security.AllowOneSided = 1<<12, rw
		rt := openKernel(t, testSystem(t))
		at := env(t, "RDMA_ADDR") + ":0"
		d := shareDomain(t, rt, rt, at, at, cfg)
		p := d.join(cfg)
		shared := memory(p.server, p.s, 1<<10, rw)
		fill(p.server, p.s, shared, "a secret")
		key := grant(p.server, p.s, shared)
		var guards bool
		p.server.send(p.s, &Call{Fn: func(id *cmid.ID) error { guards = id.Device().Attr().QPAccess; return nil }})
		next[*Done](p.server)
		if want := env(t, "RDMA_KIND") == "rxe"; guards != want {
			t.Errorf("queue pairs have access rights: %t", guards)
		}
		for _, write := range []bool{false, true} {
			stranger := newProbe(t, rt.sys, rt.OnLoop(), nil)
			id := rt.CreateID(stranger.pid, IDConfig{Raw: true, Memory: 100})
			stranger.send(id, &Dial{Addr: d.at, PrivateData: half(t, cfg.Security)})
			next[*Established](stranger)
			if guards {
				intrude(stranger, id, key, write)
				continue
			}
			near := memory(stranger, id, 8, 0)
			stranger.send(id, &Read{Memory: near, Length: 8, Key: key})
			next[*ReadDone](stranger)
			if got := string(contents(stranger, id, near)); got != "a secret" {
				t.Errorf("the stranger reads %q", got)
			}
			stranger.send(id, &Close{})
			until[*Closed](stranger)
		}
		d.server.quiet()
		if got := have(d.join(cfg), key, 8); got != "a secret" {
			t.Errorf("who is authenticated reads %q", got)
		}
		put(p, key, "as before")
	})
}
