//go:build linux && rdma

package actor

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// A kernel's device reads and writes granted memory, and ends the connection, that one only, whose
// peer uses other memory.
func TestKernelMemory(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	server := newProbe(t, rt.sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", IDConfig{Memory: 1 << 16})
	p := join(t, rt, server, at, IDConfig{Memory: 1 << 16})
	q := join(t, rt, server, at, IDConfig{Memory: 1 << 16})

	far := memory(p.server, p.s, 1<<15, rw)
	key := grant(p.server, p.s, far)
	near := memory(p.client, p.c, 1<<15, 0)
	fill(p.client, p.c, near, "through the kernel")
	part, err := key.Slice(100, 64)
	if err != nil {
		t.Fatal(err)
	}
	p.client.send(p.c, &Write{Memory: near, Length: 64, Key: part})
	next[*WriteDone](p.client)
	const writes = 200 // more than the send queue has room for
	for i := range writes {
		p.client.send(p.c, &Write{Memory: near, Length: 1 << 14, Key: key, Offset: i})
	}
	for range writes {
		next[*WriteDone](p.client)
	}
	p.client.send(p.c, &Read{Key: key, Offset: writes - 1, Memory: near, At: 1 << 14, Length: 1 << 14})
	next[*ReadDone](p.client)
	if b := contents(p.client, p.c, near); string(b[1<<14:1<<14+18]) != "through the kernel" {
		t.Errorf("read %q", b[1<<14:1<<14+18])
	}

	kernelAtomics(t, p)

	mine := memory(q.client, q.c, 64, 0) // q's client knows p's key
	q.client.send(q.c, &Write{Memory: mine, Length: 64, Key: key})
	for _, g := range until[*Closed](q.client) {
		if f, ok := g.msg.(*AccessError); ok && !errors.Is(f, ErrRemoteAccess) && !errors.Is(f, ErrFlushed) {
			t.Errorf("another connection's key: %v", f)
		}
	}
	until[*Closed](q.server)

	p.server.send(p.s, &Revoke{Memory: far})
	next[*Revoked](p.server)
	p.client.send(p.c, NewSend([]byte("still there")))
	if g := server.any(); g.data != "still there" {
		t.Errorf("beside another connection's end: %v", g)
	}
	p.client.send(p.c, &Close{})
	until[*Closed](p.client)
	until[*Closed](p.server)
	if err := rt.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// kernelAtomics makes a client add to its server's integer and swap it on soft-RoCE, and be refused
// on soft-iWARP.
func kernelAtomics(t *testing.T, p pair) {
	t.Helper()
	const n = 200 // more than the send queue has room for
	near := memory(p.client, p.c, 8*n, 0)
	if env(t, "RDMA_KIND") == "siw" {
		key := RemoteKey{Addr: 8, Length: 8, Rights: RemoteAtomic}
		for _, cmd := range []Command{
			&FetchAdd{Memory: near, Key: key}, &CompareSwap{Memory: near, Key: key}, &AllocMemory{Bytes: 8, Access: RemoteAtomic},
		} {
			p.client.send(p.c, cmd)
			f, _ := next[Failure](p.client)
			is(t, f, cmid.ErrNotSupported)
		}
		return
	}
	far := memory(p.server, p.s, 16, RemoteAtomic)
	key := grant(p.server, p.s, far)
	for i := range n {
		p.client.send(p.c, &FetchAdd{Memory: near, At: 8 * i, Key: key, Offset: 8, Add: uint64(i)})
	}
	sum := uint64(0)
	for i := range n {
		if done, _ := next[*AtomicDone](p.client); done.Old != sum {
			t.Fatalf("addition %d has found %d, want %d", i, done.Old, sum)
		}
		sum += uint64(i)
	}
	p.client.send(p.c, &CompareSwap{Memory: near, At: 8, Key: key, Offset: 8, Compare: sum - 1, Swap: 1})
	p.client.send(p.c, &CompareSwap{Memory: near, At: 16, Key: key, Offset: 8, Compare: sum, Swap: 1<<64 - 1})
	for range 2 {
		if done, _ := next[*AtomicDone](p.client); done.Old != sum {
			t.Errorf("a swap has found %d, want %d", done.Old, sum)
		}
	}
	if got := integer(p, far, 8); got != 1<<64-1 {
		t.Errorf("%d is left", got)
	}
	p.client.send(p.c, &FetchAdd{Memory: near, Key: key, Offset: 4})
	f, _ := next[*AccessError](p.client)
	is(t, f, unix.EINVAL)
	p.server.send(p.s, &FreeMemory{Memory: far})
	next[*Done](p.server)
}
