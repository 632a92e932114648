//go:build linux && rdma

package uverbs

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Both operations return the previous value in host byte order and store the new one. They count as
// Reads, so a fence waits for them.
func TestRCAtomics(t *testing.T) {
	a, b := pair(t, nil)
	const start = 0x0102030405060708
	far, err := b.dev.Alloc(64, verbs.LocalWrite|verbs.RemoteAtomic)
	b.must(err)
	word := far.Bytes[8:16]
	binary.NativeEndian.PutUint64(word, start)
	near := func(i int) []verbs.SGE {
		return []verbs.SGE{{MR: a.mr, Offset: uint32(8 * i), Length: verbs.AtomicLen}}
	}
	for i, wr := range []verbs.SendWR{
		{Op: verbs.AtomicFetchAdd, CompareAdd: 5},
		{Op: verbs.AtomicCmpSwap, CompareAdd: start, Swap: 1}, // it is another value by now
		{Op: verbs.AtomicCmpSwap, CompareAdd: start + 5, Swap: 7, Flags: verbs.Signaled},
		{Op: verbs.AtomicFetchAdd, CompareAdd: ^uint64(0), Flags: verbs.Signaled},
	} {
		wr.ID, wr.SGL, wr.RemoteAddr, wr.RKey = uint64(i), near(i), far.Addr+8, far.RKey
		a.must(a.qp.PostSend(&wr))
	}
	a.until("the last one", func() bool { return len(a.done) == 2 })
	for i, op := range []verbs.Opcode{verbs.AtomicCmpSwap, verbs.AtomicFetchAdd} {
		if want := (verbs.WC{ID: uint64(2 + i), Op: op, Bytes: 8, QP: a.qp}); a.done[i] != want {
			t.Errorf("completed as %+v, want %+v", a.done[i], want)
		}
	}
	for i, want := range []uint64{start, start + 5, start + 5, 7} {
		if got := binary.NativeEndian.Uint64(a.mr.Bytes[8*i:]); got != want {
			t.Errorf("operation %d has brought %#x, want %#x", i, got, want)
		}
	}
	if got := binary.NativeEndian.Uint64(word); got != 6 {
		t.Errorf("%d is left, want 6", got)
	}
}

// An invalid atomic operation is not posted. One that the target refuses ends the queue pair and
// changes nothing.
func TestRCAtomicsAreRefused(t *testing.T) {
	for name, x := range map[string]struct {
		change func(wr *verbs.SendWR)
		want   verbs.Status
	}{
		"a misaligned address": {func(wr *verbs.SendWR) { wr.RemoteAddr += 4 }, verbs.StatusRemInvReq},
		"outside":              {func(wr *verbs.SendWR) { wr.RemoteAddr += 64 }, verbs.StatusRemAccess},
		"a key of nobody":      {func(wr *verbs.SendWR) { wr.RKey ^= 0x5a5a5a00 }, verbs.StatusRemAccess},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, nil)
			far, err := b.dev.Alloc(64, verbs.LocalWrite|verbs.RemoteAtomic)
			b.must(err)
			wr := verbs.SendWR{Op: verbs.AtomicFetchAdd, CompareAdd: 1, RemoteAddr: far.Addr, RKey: far.RKey}
			for _, n := range []uint32{0, 4, 16} {
				wr.SGL = []verbs.SGE{{MR: a.mr, Length: n}}
				if err := a.qp.PostSend(&wr); !errors.Is(err, unix.EINVAL) {
					t.Errorf("into %d bytes: %v, want EINVAL", n, err)
				}
			}
			wr.SGL = []verbs.SGE{{MR: a.mr, Length: verbs.AtomicLen}}
			x.change(&wr)
			a.must(a.qp.PostSend(&wr))
			a.until("the refusal", func() bool { return len(a.done) == 1 })
			if wc := a.done[0]; wc.Status != x.want {
				t.Errorf("completed as %+v, want %v", wc, x.want)
			}
			for i, c := range far.Bytes {
				if c != 0 {
					t.Errorf("byte %d of the target is %#x", i, c)
				}
			}
		})
	}
}

// siw has no atomic operations and refuses them before anything is posted.
func TestAtomicsAsAnnounced(t *testing.T) {
	r := newRig(t, eventloop.Config{})
	if got := r.dev.Attr().Atomics; got == onSIW(t) {
		t.Errorf("Attr.Atomics is %v", got)
	}
	mr, err := r.dev.Alloc(8, verbs.LocalWrite|verbs.RemoteAtomic)
	if onSIW(t) {
		if !errors.Is(err, verbs.ErrNotSupported) {
			t.Errorf("memory for atomics: %v, want ErrNotSupported", err)
		}
		return
	}
	r.must(err)
	r.must(r.dev.Free(mr))
	if _, err := r.dev.Alloc(8, verbs.RemoteAtomic); !errors.Is(err, unix.EINVAL) {
		t.Errorf("remote atomic without local write: %v, want EINVAL", err)
	}
}
