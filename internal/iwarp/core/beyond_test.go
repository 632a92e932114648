package core_test

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestBeyond4GiB: an element that begins below 4 GiB may end above it, because memory can be sent
// without being registered (verbs.Registrar). Bytes that are never accessed take no memory.
func TestBeyond4GiB(t *testing.T) {
	const border, n = 1 << 32, 64 << 10
	mem, err := unix.Mmap(-1, 0, border+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	data := pattern(n)
	large := &verbs.MR{Bytes: mem, Access: verbs.LocalWrite}
	across := verbs.SGE{MR: large, Offset: border - n/2, Length: n}
	clearAcross := func() { clear(mem[border-n/2:]) }

	for name, next := range map[string]func() int{"whole": whole, "in pieces": func() int { return 1000 }} {
		r := connectMemory(t, n, core.Config{}, core.Config{})
		copy(r.far.Bytes, data)

		copy(mem[border-n/2:], data)
		dst := r.b.postRecv(1, n)
		r.a.post(&verbs.SendWR{ID: 1, Flags: verbs.Signaled, SGL: []verbs.SGE{across}})
		move(r.a, r.b, 1<<30, next)
		if !bytes.Equal(dst.Bytes, data) {
			t.Errorf("%s: sent from across 4 GiB: other bytes", name)
		}

		clearAcross()
		r.a.post(&verbs.SendWR{
			ID: 2, Op: verbs.Read, Flags: verbs.Signaled, SGL: []verbs.SGE{across}, RemoteAddr: r.far.Addr, RKey: r.far.RKey,
		})
		move(r.a, r.b, 1<<30, next)
		if !bytes.Equal(mem[border-n/2:border+n/2], data) {
			t.Errorf("%s: read to across 4 GiB: other bytes", name)
		}

		clearAcross()
		if err := r.a.c.PostRecv(verbs.RecvWR{ID: 3, SGE: across}); err != nil {
			t.Fatal(err)
		}
		r.b.postSend(3, string(data), 0)
		move(r.a, r.b, 1<<30, next)
		if !bytes.Equal(mem[border-n/2:border+n/2], data) {
			t.Errorf("%s: received across 4 GiB: other bytes", name)
		}
		r.a.wantDone(name, "s1:success/65536 s2:success/65536 r3:success/65536")
	}
}

// TestLandBeyond4GiB tests bytes that are read directly into their destination.
func TestLandBeyond4GiB(t *testing.T) {
	const border, n = 1 << 32, 2 * core.MaxSegment
	mem, err := unix.Mmap(-1, 0, border+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	r := connectMemory(t, n, core.Config{}, core.Config{})
	r.a.post(&verbs.SendWR{
		ID: 1, Op: verbs.Read, Flags: verbs.Signaled, RemoteAddr: r.far.Addr, RKey: r.far.RKey,
		SGL: []verbs.SGE{{MR: &verbs.MR{Bytes: mem, Access: verbs.LocalWrite}, Offset: border - core.MaxSegment, Length: n}},
	})
	r.b.input(r.a.take(1<<30), whole)
	for in := r.b.take(1 << 30); len(in) > 0; {
		in = in[r.a.readv(in):]
	}
	if !bytes.Equal(mem[border-core.MaxSegment:border+core.MaxSegment], r.far.Bytes) {
		t.Error("other bytes")
	}
	r.a.wantDone("landed", "s1:success/131008")
}
