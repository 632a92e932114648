package uverbs

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// fakeRing is rxe's side of a queue in plain memory.
type fakeRing struct {
	mem   []byte
	h     *rxeQueueBuf
	shift uint
}

func newFakeRing(slots uint32, shift uint) *fakeRing {
	mem := make([]uint64, (sizeOf[rxeQueueBuf]()+int(slots)<<shift)/8) // aligned as a page is
	f := &fakeRing{mem: bytesOf(mem), shift: shift}
	f.h = typedAt[rxeQueueBuf](f.mem, 0)
	f.h.Log2ElemSize, f.h.IndexMask = uint32(shift), slots-1
	return f
}

func (f *fakeRing) element(i uint32) int {
	return sizeOf[rxeQueueBuf]() + int(i&f.h.IndexMask)<<f.shift
}

// next returns the offset of the oldest element that the process has put.
func (f *fakeRing) next() (off int, ok bool) {
	c := atomicWord(&f.h.ConsumerIndex).Load()
	if c == atomicWord(&f.h.ProducerIndex).Load() {
		return 0, false
	}
	return f.element(c), true
}

func step(w *atomic.Uint32, mask uint32) { w.Store((w.Load() + 1) & mask) }

func (f *fakeRing) consume() { step(atomicWord(&f.h.ConsumerIndex), f.h.IndexMask) }

// produce puts a completion.
func (f *fakeRing) produce(wc hca.WC) {
	*typedAt[hca.WC](f.mem, f.element(atomicWord(&f.h.ProducerIndex).Load())) = wc
	step(atomicWord(&f.h.ProducerIndex), f.h.IndexMask)
}

// fake is a queue pair on rings in plain memory. The test plays the kernel.
type fake struct {
	testing.TB
	d          *device
	q          *queuePair
	cq         *completionQueue
	sq, rq, cr *fakeRing
	mr         *verbs.MR
}

const fakeDepth = 8

func newFake(tb testing.TB) *fake {
	f := &fake{TB: tb, sq: newFakeRing(2*fakeDepth, 9), rq: newFakeRing(2*fakeDepth, 6), cr: newFakeRing(4*fakeDepth, 6)}
	d := &device{
		name: "fake", qps: map[uint32]*queuePair{}, handles: map[uint64]any{}, cqs: map[*completionQueue]struct{}{}, deferred: true,
		attr: verbs.DeviceAttr{MaxInline: rxeInline, MaxSGE: rxeMaxSGE, MaxMessage: 1 << 20, Immediate: true},
	}
	f.d = d
	d.pd = &domain{dev: d, mrs: map[*verbs.MR]region{}}
	f.cq = &completionQueue{dev: d, notify: func() {}, users: 2}
	cr, err := newRxeQueue(f.cr.mem, sizeOf[hca.WC](), false)
	f.must(err)
	f.cq.parts = []*cqPart{{q: f.cq, ring: &rxeCompletions{cr}, armed: true}}
	f.q = &queuePair{
		dev: d, typ: verbs.RC, num: 17, pd: d.pd, sendCQ: f.cq, recvCQ: f.cq, state: verbs.QPRTS, reads: true,
		attr: verbs.QPInitAttr{MaxSendWR: fakeDepth, MaxRecvWR: fakeDepth, MaxSGE: 2}, list: make([]place, 0, 2),
		sends: newSends(fakeDepth), recvs: newRecvs(fakeDepth), dirty: true,
	}
	f.q.sendPart, f.q.recvPart = f.cq.parts[0], f.cq.parts[0]
	sq, err := newRxeQueue(f.sq.mem, sizeOf[rxeSendWQE]()+rxeInline, true)
	f.must(err)
	rq, err := newRxeQueue(f.rq.mem, sizeOf[rxeRecvWQE](), true)
	f.must(err)
	f.q.sq, f.q.rq = &rxeSends{rxeQueue: sq, maxInline: rxeInline}, &rxeRecvs{rq}
	d.qps[17] = f.q
	f.mr = &verbs.MR{PD: d.pd, Bytes: make([]byte, 4096), Addr: 0x10000, LKey: 5, Access: verbs.LocalWrite}
	return f
}

func (f *fake) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// part returns n bytes of the fake's memory.
func (f *fake) part(off, n int) verbs.SGE {
	return verbs.SGE{MR: f.mr, Offset: uint32(off), Length: uint32(n)}
}

// send completes the oldest send with a status, and returns its work request. If it is not
// signaled, its success is not reported.
func (f *fake) send(status verbs.Status) (w rxeSendWQE) {
	f.Helper()
	off, ok := f.sq.next()
	if !ok {
		f.Fatal("nothing in the send queue")
	}
	w = *typedAt[rxeSendWQE](f.sq.mem, off)
	f.sq.consume()
	if w.WR.SendFlags&hca.SendSignaled != 0 || status != verbs.StatusSuccess {
		f.cr.produce(hca.WC{WRID: w.WR.WRID, Status: uint32(status), QPNum: 17})
	}
	return w
}

// recv completes the oldest receive with n bytes.
func (f *fake) recv(n int) (w rxeRecvWQE) {
	f.Helper()
	off, ok := f.rq.next()
	if !ok {
		f.Fatal("nothing in the receive queue")
	}
	w = *typedAt[rxeRecvWQE](f.rq.mem, off)
	f.rq.consume()
	f.cr.produce(hca.WC{WRID: w.WRID, QPNum: 17, ByteLen: uint32(n), WCFlags: hca.WCGRH})
	return w
}

func (f *fake) poll() []verbs.WC {
	wc := make([]verbs.WC, 64)
	return wc[:f.cq.Poll(wc)]
}

// want polls and checks for exactly these completions.
func (f *fake) want(why string, want ...verbs.WC) {
	f.Helper()
	got := f.poll()
	if len(got) != len(want) {
		f.Fatalf("%s: polled %+v, want %+v", why, got, want)
	}
	for i := range want {
		want[i].QP = f.q
		if got[i] != want[i] {
			f.Errorf("%s: completion %d is %+v, want %+v", why, i, got[i], want[i])
		}
	}
}

// siwMemory returns memory for n elements of siw's.
func siwMemory(n, elem int) []byte { return bytesOf(make([]uint64, (n*elem+15)/8)) }

var (
	errFull = unix.ENOMEM
	errBad  = unix.EINVAL
)
