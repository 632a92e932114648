//go:build linux && rdma

package actor

import (
	"bytes"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// kernelImmediates writes n bytes count times from a client into memory of its server, more than a
// receive holds and more often than there are credits. soft-iWARP refuses each.
func kernelImmediates(t *testing.T, cfg IDConfig, n, count int) {
	t.Helper()
	rt := openKernel(t, testSystem(t))
	server := newProbe(t, rt.sys, rt.OnLoop(), nil)
	cfg.Memory, cfg.MaxMessage, cfg.Credits = 2*n, 1<<10, 4
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", cfg)
	p := join(t, rt, server, at, cfg)
	far := memory(p.server, p.s, n, rw)
	key := grant(p.server, p.s, far)
	near := memory(p.client, p.c, n, 0)
	text := bytes.Repeat([]byte("0123456789abcdef"), n/16)
	touch(p.client, p.c, func() { copy(near.Bytes(), text) })
	var came []*Received
	server.reactWith(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*Received); ok {
			came = append(came, m.Clone())
		}
	})
	for i := range count {
		p.client.send(p.c, &Write{Memory: near, Length: n, Key: key, HasImm: true, Imm: uint32(i)})
	}
	if env(t, "RDMA_KIND") == "siw" {
		f, _ := next[*AccessError](p.client)
		is(t, f, cmid.ErrNotSupported)
		return
	}
	for range count {
		next[*WriteDone](p.client)
	}
	p.client.send(p.c, NewSend([]byte("behind")))
	p.client.send(p.c, &Close{})
	end := until[*Closed](p.client)
	if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != uint64(count+1) {
		t.Errorf("the end: %+v", c)
	}
	until[*Closed](p.server)
	if len(came) != count+1 || string(came[count].Data) != "behind" {
		t.Fatalf("%d came, want %d and a message", len(came), count)
	}
	for i, m := range came[:count] {
		if !m.HasImm || m.Imm != uint32(i) || m.Written != n || len(m.Data) != 0 {
			t.Fatalf("notification %d is %v", i, m)
		}
	}
}

// Writes with an immediate through the kernel's devices.
func TestKernelWriteWithImmediate(t *testing.T) {
	leavesNothing(t)
	kernelImmediates(t, IDConfig{}, 1<<15, 50)
}

// On a secured connection they are refused unless both sides allow them.
func TestKernelSecuredWriteWithImmediate(t *testing.T) {
	securedKernel(t, func(t *testing.T, cfg IDConfig) {
		rt := openKernel(t, testSystem(t))
		server := newProbe(t, rt.sys, rt.OnLoop(), nil)
		cfg.Memory = 1 << 12
		_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", cfg)
		p := join(t, rt, server, at, cfg)
		p.server.send(p.s, &AllocMemory{Bytes: 64, Access: rw})
		f, _ := next[*CommandFailed](p.server)
		is(t, f, ErrSecured)
		p.client.send(p.c, &Write{Key: RemoteKey{Length: 64, Rights: RemoteWrite}, HasImm: true})
		a, _ := next[*AccessError](p.client)
		is(t, a, ErrSecured)
		is(t, a, unix.EPERM)
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
		until[*Closed](p.server)
	})
	securedKernel(t, func(t *testing.T, cfg IDConfig) {
		cfg.Security.AllowOneSided = rw
		kernelImmediates(t, cfg, 1<<15, 20)
	})
}
