//go:build linux && rdma

package actor

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// securedKernel runs test once for each mode, with what both sides of its connections have.
func securedKernel(t *testing.T, test func(t *testing.T, cfg IDConfig)) {
	t.Helper()
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		leavesNothing(t)
		s := made(t)
		if s.TLS != nil {
			s.TLS.ServerName = "alice" // the certificate does not have the machine's address
		}
		test(t, IDConfig{Security: s, Credits: 8})
	})
}

// Echoes of all eager sizes, over one connection and over some that are made at a time.
func TestKernelSecuredEcho(t *testing.T) {
	securedKernel(t, func(t *testing.T, cfg IDConfig) {
		cfg.MaxMessage = 64 << 10
		for _, n := range []int{1, 20} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				rt := openKernel(t, testSystem(t))
				at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", cfg)
				talk(t, rt, at, n, cfg)
			})
		}
	})
}

// Connections that are made one behind the other: no first record gets lost, which soft-iWARP may
// overlook (docs/kernel.md).
func TestKernelSecuredConnects(t *testing.T) {
	securedKernel(t, func(t *testing.T, cfg IDConfig) {
		rt := openKernel(t, testSystem(t))
		at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", cfg)
		p := newProbe(t, rt.sys, rt.OnLoop(), nil)
		slowest := time.Duration(0)
		for i := range 20 {
			began := time.Now()
			id := rt.CreateID(p.pid, cfg)
			p.send(id, &Dial{Addr: at, PrivateData: bytes.Repeat([]byte("q"), 255)})
			if g := p.any(); kinds([]got{g}) != "Established" {
				t.Fatalf("connection %d: %v", i, g)
			}
			slowest = max(slowest, time.Since(began))
			p.send(id, NewSend([]byte("once")))
			if g := p.any(); g.data != "once" {
				t.Fatalf("connection %d: %v", i, g)
			}
			p.send(id, &Close{})
			if end := until[*Closed](p); end[len(end)-1].msg.(*Closed).Err != nil {
				t.Errorf("connection %d: %v", i, end)
			}
		}
		t.Logf("the slowest was established after %v", slowest)
	})
}

// Large messages in both directions at a time, in sealed segments.
func TestKernelSecuredLarge(t *testing.T) {
	leavesNothing(t)
	kernelLarge(t, 1, IDConfig{Security: psk(t), Credits: 16})
}

// A reject has its reason, and a peer without security, or with another key, is refused.
func TestKernelSecuredReject(t *testing.T) {
	securedKernel(t, func(t *testing.T, cfg IDConfig) {
		rt := openKernel(t, testSystem(t))
		server, client := newProbe(t, rt.sys, rt.OnLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
		_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", cfg)
		client.send(rt.CreateID(client.pid, cfg), &Dial{Addr: at, PrivateData: []byte("hello")})
		r, s := next[*ConnectRequest](server)
		if r.Identity != "alice" || string(r.PrivateData) != "hello" {
			t.Errorf("the request is %+v", r)
		}
		reason := bytes.Repeat([]byte("no"), 127)
		server.send(s, &Reject{PrivateData: reason})
		if r, _ := next[*Rejected](client); !bytes.Equal(r.PrivateData, reason) {
			t.Errorf("rejected: %v, with %q", r, r.PrivateData)
		}
		next[*Closed](client)
		until[*Closed](server)

		other := new(Keyring)
		if err := other.Use(credential("mallory", 9)); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Security{"none": {Mode: Insecure}, "another key": {Mode: PSK, Keys: other}} {
			client.send(rt.CreateID(client.pid, IDConfig{Security: s}), &Dial{Addr: at})
			f, _ := next[Failure](client)
			if !errors.Is(f, unix.EACCES) {
				t.Errorf("%s: %v", name, f)
			}
			until[*Closed](client)
		}
		server.quiet()
	})
}

// Keys of connections change while messages flow in both directions.
func TestKernelSecuredRekeys(t *testing.T) {
	leavesNothing(t)
	const n = 3000
	cfg := IDConfig{Security: psk(t), Credits: 8, rekey: 1024}
	rt := openKernel(t, testSystem(t), Config{Limits: Limits{SendQueue: n}})
	at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", cfg)
	p := newProbe(t, rt.sys, rt.OnLoop(), nil)
	id := rt.CreateID(p.pid, cfg)
	p.send(id, &Dial{Addr: at})
	next[*Established](p)
	for i := range n {
		p.send(id, NewSend(fmt.Append(nil, i)))
	}
	for i := range n {
		if g := p.any(); g.data != fmt.Sprint(i) {
			t.Fatalf("message %d is %v", i, g)
		}
	}
	p.send(id, &Close{})
	end := until[*Closed](p)
	if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != n {
		t.Errorf("the end: %v", end)
	}
}

// Another key takes a key's place while connections go on.
func TestKernelSecuredRotation(t *testing.T) {
	leavesNothing(t)
	old, fresh, keys := credential("alice", 1), credential("alice", 2), new(Keyring)
	step := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	step(errors.Join(keys.Accept(old), keys.Use(old)))
	cfg := IDConfig{Security: &Security{Mode: PSK, Keys: keys}, MaxMessage: 64 << 10, Credits: 4}
	rt := openKernel(t, testSystem(t))
	at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", cfg)
	p := newProbe(t, rt.sys, rt.OnLoop(), nil)
	id := rt.CreateID(p.pid, cfg)
	p.send(id, &Dial{Addr: at})
	next[*Established](p)
	echoes := func() {
		p.send(id, NewSend([]byte("old")))
		if g := p.any(); g.data != "old" {
			t.Fatalf("got %v", g)
		}
	}
	step(keys.Accept(old, fresh))
	talk(t, rt, at, 1, cfg)
	echoes()
	step(keys.Use(fresh))
	talk(t, rt, at, 1, cfg)
	step(keys.Accept(fresh))
	talk(t, rt, at, 1, cfg)
	echoes()
	step(keys.Use(old))
	p.send(rt.CreateID(p.pid, cfg), &Dial{Addr: at})
	f, _ := next[Failure](p)
	is(t, f, unix.EACCES)
	until[*Closed](p)
	echoes()
	p.send(id, &Close{})
	until[*Closed](p)
}
