package uverbs

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestSendsCompleteInOrderAndGoRound(t *testing.T) {
	f := newFake(t)
	for i := range uint64(100) {
		f.must(f.q.PostSend(&verbs.SendWR{ID: i, Flags: verbs.Signaled | verbs.Solicited, SGL: []verbs.SGE{f.part(8, 100), f.part(200, 28)}}))
		off, _ := f.sq.next()
		sge := *typedAt[place](f.sq.mem, off+sizeOf[rxeSendWQE]()+sizeOf[place]())
		w := f.send(verbs.StatusSuccess)
		if w.WR.Opcode != hca.WRSend || w.WR.SendFlags != hca.SendSignaled|hca.SendSolicited || w.DMA.Length != 128 || w.DMA.Resid != 128 ||
			w.DMA.NumSGE != 2 || w.SSN != uint32(i+1) || sge != (place{Addr: 0x10000 + 200, Length: 28, LKey: 5}) {
			t.Fatalf("send %d is %+v with second element %+v", i, w, sge)
		}
		f.want("one send", verbs.WC{ID: i, Op: verbs.Send, Bytes: 128})
	}
}

func TestQueuesAreFullAtTheirOwnersLimit(t *testing.T) {
	f := newFake(t)
	for round := range 40 {
		for i := range uint64(fakeDepth) {
			f.must(f.q.PostSend(&verbs.SendWR{ID: i, Flags: verbs.Signaled}))
			f.must(f.q.PostRecv(verbs.RecvWR{ID: 100 + i, SGE: f.part(0, 64)}))
		}
		if err := f.q.PostSend(&verbs.SendWR{}); !errors.Is(err, errFull) {
			t.Fatalf("round %d: a send too many: %v, want ENOMEM", round, err)
		}
		if err := f.q.PostRecv(verbs.RecvWR{}); !errors.Is(err, errFull) {
			t.Fatalf("round %d: a receive too many: %v, want ENOMEM", round, err)
		}
		var want []verbs.WC
		for i := range uint64(fakeDepth) {
			f.send(verbs.StatusSuccess)
			f.recv(64)
			want = append(want, verbs.WC{ID: i, Op: verbs.Send}, verbs.WC{ID: 100 + i, Op: verbs.Recv, Bytes: 64})
		}
		f.want("a round", want...)
	}
}

func TestSilentSendsGiveTheirPlacesBack(t *testing.T) {
	f := newFake(t)
	for i := range uint64(50) {
		for range fakeDepth - 1 {
			f.must(f.q.PostSend(&verbs.SendWR{ID: 1}))
			f.send(verbs.StatusSuccess)
		}
		f.want("what is not signaled is not reported")
		f.must(f.q.PostSend(&verbs.SendWR{ID: 10 + i, Op: verbs.Write, Flags: verbs.Signaled, Inline: []byte("abc"), RemoteAddr: 7, RKey: 8}))
		off, _ := f.sq.next()
		u := *unionOf[hca.RDMAWR](&typedAt[rxeSendWQE](f.sq.mem, off).WR.WR)
		if got := string(f.sq.mem[off+sizeOf[rxeSendWQE]():][:3]); got != "abc" || u.RemoteAddr != 7 || u.RKey != 8 {
			t.Fatalf("inline Write of %q to %+v", got, u)
		}
		f.send(verbs.StatusSuccess)
		f.want("the last of a run", verbs.WC{ID: 10 + i, Op: verbs.Write, Bytes: 3})
	}
}

func TestFailureEndsTheQueuePair(t *testing.T) {
	f := newFake(t)
	for i := range uint64(3) {
		f.must(f.q.PostSend(&verbs.SendWR{ID: i, Inline: []byte("x")}))
	}
	f.send(verbs.StatusSuccess)
	f.send(verbs.StatusRemAccess)
	f.send(verbs.StatusFlushed)
	f.want("failures are reported, signaled or not", verbs.WC{ID: 1, Op: verbs.Send, Status: verbs.StatusRemAccess},
		verbs.WC{ID: 2, Op: verbs.Send, Status: verbs.StatusFlushed})
	if err := f.q.PostSend(&verbs.SendWR{}); !errors.Is(err, errBad) {
		t.Errorf("a send after that: %v, want EINVAL", err)
	}
	if err := f.q.PostRecv(verbs.RecvWR{}); !errors.Is(err, errBad) {
		t.Errorf("a receive after that: %v, want EINVAL", err)
	}
}

func TestFlushCompletesEachOnce(t *testing.T) {
	f := newFake(t)
	f.must(f.q.PostSend(&verbs.SendWR{ID: 1}))                        // done in silence
	f.must(f.q.PostSend(&verbs.SendWR{ID: 2, Flags: verbs.Signaled})) // done, not polled
	f.must(f.q.PostSend(&verbs.SendWR{ID: 3}))                        // done in silence
	f.must(f.q.PostSend(&verbs.SendWR{ID: 4}))
	f.must(f.q.PostSend(&verbs.SendWR{ID: 5, Flags: verbs.Signaled}))
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 6}))
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 7}))
	for range 3 {
		f.send(verbs.StatusSuccess)
	}
	f.recv(0)
	f.q.flushOutstanding(f.q.firstUntaken())
	f.want("what was done is reported as done, what was not as flushed", verbs.WC{ID: 2, Op: verbs.Send}, verbs.WC{ID: 6, Op: verbs.Recv},
		verbs.WC{ID: 4, Op: verbs.Send, Status: verbs.StatusFlushed}, verbs.WC{ID: 5, Op: verbs.Send, Status: verbs.StatusFlushed},
		verbs.WC{ID: 7, Op: verbs.Recv, Status: verbs.StatusFlushed})
	f.send(verbs.StatusFlushed) // too late
	f.want("nothing completes twice")
}

func TestLostDeviceFlushes(t *testing.T) {
	f := newFake(t)
	f.must(f.q.PostSend(&verbs.SendWR{ID: 1}))
	f.must(f.q.PostRecv(verbs.RecvWR{ID: 2}))
	f.d.handleAsync(hca.Event{Type: hca.EventDeviceFail})
	f.want("nobody will complete it", verbs.WC{ID: 1, Op: verbs.Send, Status: verbs.StatusFlushed},
		verbs.WC{ID: 2, Op: verbs.Recv, Status: verbs.StatusFlushed})
	if _, err := f.d.Alloc(1, 0); !errors.Is(err, unix.ENODEV) {
		t.Errorf("memory of a device that is gone: %v, want ENODEV", err)
	}
	if err := f.q.Modify(&verbs.QPAttr{}, verbs.QPAttrState); !errors.Is(err, unix.ENODEV) {
		t.Errorf("a change of a queue pair whose device is gone: %v, want ENODEV", err)
	}
	for why, err := range map[string]error{"send": f.q.PostSend(&verbs.SendWR{}), "receive": f.q.PostRecv(verbs.RecvWR{})} {
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("a %s on a queue pair whose device is gone: %v, want EINVAL", why, err)
		}
	}
	f.must(f.q.Destroy())
	f.want("once")
}

func TestWhatMakesNoSenseReachesNobody(t *testing.T) {
	f := newFake(t)
	f.must(f.q.PostSend(&verbs.SendWR{ID: 1, Flags: verbs.Signaled}))
	for _, wc := range []hca.WC{
		{QPNum: 18},
		{QPNum: 17, WRID: 1},
		{QPNum: 17, WRID: 1<<63 - 1},
		{QPNum: 17, WRID: recvCookie},
		{QPNum: 17, WRID: recvCookie | 3},
		{QPNum: 17, WRID: 1<<64 - 1},
	} {
		f.cr.produce(wc)
	}
	f.want("completions of what was never posted")
	f.send(verbs.StatusSuccess)
	f.want("what was posted", verbs.WC{ID: 1, Op: verbs.Send})
	f.must(f.q.PostSend(&verbs.SendWR{ID: 2}))
	f.q.flushOutstanding(f.q.firstUntaken())
	f.want("what was posted behind them", verbs.WC{ID: 2, Op: verbs.Send, Status: verbs.StatusFlushed})
}

func TestRxeRingIsFullBeforeItIsEmpty(t *testing.T) {
	ring, err := newRxeQueue(newFakeRing(8, 9).mem, sizeOf[rxeSendWQE]()+rxeInline, true)
	if err != nil {
		t.Fatal(err)
	}
	q := &rxeSends{rxeQueue: ring, maxInline: rxeInline}
	n := 0
	for n < 100 && q.Put(uint64(n), &verbs.SendWR{}, nil, 0, false) {
		n++
	}
	if n != 7 {
		t.Errorf("%d requests in a ring of 8, want 7: with 8 it would look empty", n)
	}
}

func TestSharedQueueKnowsItsReceives(t *testing.T) {
	f := newFake(t)
	s := &sharedQueue{dev: f.d, pd: f.d.pd, attr: verbs.SRQInitAttr{MaxWR: 2}, ring: f.q.rq, slots: make([]slot, 2), free: []uint32{1, 0}}
	f.q.srq = s
	f.must(s.PostRecv(verbs.RecvWR{ID: 1}))
	f.must(s.PostRecv(verbs.RecvWR{ID: 2}))
	if err := s.PostRecv(verbs.RecvWR{ID: 3}); !errors.Is(err, errFull) {
		t.Errorf("a receive too many: %v, want ENOMEM", err)
	}
	for _, cookie := range []uint64{recvCookie | 2, recvCookie | 1<<40, 1<<64 - 1} {
		f.cr.produce(hca.WC{WRID: cookie, QPNum: 17})
	}
	f.want("completions of what was never posted")
	f.recv(0)
	f.cr.produce(hca.WC{WRID: recvCookie, QPNum: 17}) // again
	f.want("one receive, once", verbs.WC{ID: 1, Op: verbs.Recv})
	f.must(s.PostRecv(verbs.RecvWR{ID: 3}))
	f.recv(0)
	f.recv(0)
	f.want("the others", verbs.WC{ID: 2, Op: verbs.Recv}, verbs.WC{ID: 3, Op: verbs.Recv})
}

func TestRingsThatAreNone(t *testing.T) {
	for _, h := range []rxeQueueBuf{
		{},
		{Log2ElemSize: 6, IndexMask: 2},
		{Log2ElemSize: 6, IndexMask: 31},
		{Log2ElemSize: 5, IndexMask: 1},
		{Log2ElemSize: 63, IndexMask: 1},
		{Log2ElemSize: 6, IndexMask: 1<<32 - 1},
	} {
		f := newFakeRing(16, 6)
		*f.h = h
		if _, err := newRxeQueue(f.mem, sizeOf[hca.WC](), false); !errors.Is(err, unix.EIO) {
			t.Errorf("a queue of %d elements of 2^%d bytes: %v, want EIO", uint64(h.IndexMask)+1, h.Log2ElemSize, err)
		}
	}
	if _, err := newRxeQueue(make([]byte, 100), 48, false); !errors.Is(err, unix.EIO) {
		t.Errorf("no room for a header: %v, want EIO", err)
	}
	for _, n := range []uint32{0, 3, 32} {
		if _, err := newSiwQueue(siwMemory(16, sizeOf[siwSQE]()), n, sizeOf[siwSQE](), siwSQEHead); !errors.Is(err, unix.EIO) {
			t.Errorf("a queue of %d in the memory of 16: %v, want EIO", n, err)
		}
		if _, err := newSiwCompletions(siwMemory(16, sizeOf[siwCQE]()), n); !errors.Is(err, unix.EIO) {
			t.Errorf("a completion queue of %d in the memory of 16: %v, want EIO", n, err)
		}
	}
}

func TestIndicesThatAreNoneStayInside(t *testing.T) {
	f := newFake(t)
	atomicWord(&f.cr.h.ProducerIndex).Store(1<<32 - 1)
	atomicWord(&f.sq.h.ConsumerIndex).Store(1 << 31)
	atomicWord(&f.rq.h.ConsumerIndex).Store(1<<32 - 7)
	for range 100 {
		f.poll()
		_ = f.q.PostSend(&verbs.SendWR{Inline: make([]byte, rxeInline)})
		_ = f.q.PostRecv(verbs.RecvWR{})
	}
	_ = f.q.rq.Left()
	_ = f.q.firstUntaken()
}

func TestPostAndPollAllocateNothing(t *testing.T) {
	f := newFake(t)
	var wc [4]verbs.WC
	wr := verbs.SendWR{Flags: verbs.Signaled, SGL: []verbs.SGE{f.part(0, 64)}}
	round := func() {
		f.must(f.q.PostRecv(verbs.RecvWR{SGE: f.part(0, 64)}))
		f.must(f.q.PostSend(&wr))
		f.send(verbs.StatusSuccess)
		f.recv(64)
		if n := f.cq.Poll(wc[:]); n != 2 {
			t.Fatalf("polled %d", n)
		}
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n > 0 {
		t.Errorf("%v allocations for a send, a receive and their completions", n)
	}
}

func BenchmarkPostPoll(b *testing.B) {
	f := newFake(b)
	var wc [4]verbs.WC
	wr := verbs.SendWR{Flags: verbs.Signaled, SGL: []verbs.SGE{f.part(0, 64)}}
	b.ReportAllocs()
	for b.Loop() {
		errR, errS := f.q.PostRecv(verbs.RecvWR{SGE: f.part(0, 64)}), f.q.PostSend(&wr)
		send, recv := f.q.sends.head, f.q.recvs.head
		f.sq.consume()
		f.rq.consume()
		f.cr.produce(hca.WC{WRID: send, QPNum: 17})
		f.cr.produce(hca.WC{WRID: recvCookie | recv, QPNum: 17})
		if n := f.cq.Poll(wc[:]); n != 2 || errR != nil || errS != nil {
			b.Fatal(n, errR, errS)
		}
	}
}

// FuzzCompletion: whatever a completion contains, nothing panics, and nothing completes that was
// not posted.
func FuzzCompletion(f *testing.F) {
	f.Add(make([]byte, 48), false)
	f.Add(append([]byte{1: 0, 7: 0x80, 28: 17}, make([]byte, 20)...), false)
	f.Add(make([]byte, 32), true)
	f.Fuzz(func(t *testing.T, raw []byte, siw bool) {
		k := newFake(t)
		k.must(k.q.PostSend(&verbs.SendWR{ID: 1}))
		k.must(k.q.PostRecv(verbs.RecvWR{ID: 2}))
		if siw {
			ring, err := newSiwCompletions(siwMemory(2, sizeOf[siwCQE]()), 2)
			k.must(err)
			copy(ring.mem[:sizeOf[siwCQE]()], raw)
			k.cq.parts[0].ring = ring
		} else {
			copy(k.cr.mem[k.cr.element(0):][:sizeOf[hca.WC]()], raw)
			step(atomicWord(&k.cr.h.ProducerIndex), k.cr.h.IndexMask)
		}
		for _, wc := range k.poll() {
			if wc.QP != k.q || wc.ID != 1 && wc.ID != 2 {
				t.Errorf("completed %+v", wc)
			}
			if wc.Op == verbs.Recv && wc.Bytes > 0 {
				t.Errorf("received %d bytes in a receive without room", wc.Bytes)
			}
			_ = wc.Status.String()
		}
		var ev hca.AsyncEvent
		copy(bytesOfEvent(&ev), raw)
		k.d.handles[0], k.d.handles[1] = k.q, &sharedQueue{dev: k.d, gone: true}
		k.d.handleAsync(hca.Event{Type: ev.EventType, Object: ev.Element})
		k.d.handleCompletion(ev.Element)
	})
}

// TestMoreBytesThanTheReceive: a receive is never reported with more bytes than it has room for,
// whatever the device reports: the owner would read beyond its memory. A peer's Write with
// immediate data is elsewhere, and may be longer.
func TestMoreBytesThanTheReceive(t *testing.T) {
	for _, c := range []struct {
		bytes, opcode uint32
		want          verbs.WC
	}{
		{64, 128, verbs.WC{ID: 1, Op: verbs.Recv, Bytes: 64}},
		{65, 128, verbs.WC{ID: 1, Op: verbs.Recv, Status: verbs.StatusLocLen}},
		{65, 129, verbs.WC{ID: 1, Op: verbs.RecvWrite, Bytes: 65}},
	} {
		f := newFake(t)
		f.must(f.q.PostRecv(verbs.RecvWR{ID: 1, SGE: f.part(0, 64)}))
		f.cr.produce(hca.WC{WRID: recvCookie, QPNum: 17, Opcode: c.opcode, ByteLen: c.bytes})
		f.want("whatever the kernel says", c.want)
		if ended := c.want.Status != verbs.StatusSuccess; (f.q.state == verbs.QPError) != ended {
			t.Errorf("%d bytes: the queue pair is in state %v", c.bytes, f.q.state)
		}
	}
}

// TestGIDChangeIsHeard: the indexes of a port's addresses are looked up again when the kernel has
// reported a change, or is about to report one. The event's element is a port number, not the
// handle of a queue.
func TestGIDChangeIsHeard(t *testing.T) {
	f := newFake(t)
	var p [2]int
	f.must(unix.Pipe(p[:]))
	defer func() { f.must(errors.Join(unix.Close(p[0]), unix.Close(p[1]))) }()
	f.d.channels.Async = p[0]
	gid := [16]byte{15: 1}
	known := func() bool {
		f.d.gids = map[[16]byte]uint8{gid: 3}
		i, err := f.d.gidIndex(gid)
		return err == nil && i == 3
	}
	if !known() {
		t.Error("what was found is not remembered")
	}
	f.d.handleAsync(hca.Event{Object: 1, Type: hca.EventGIDChange})
	if len(f.d.gids) != 0 {
		t.Error("a change was reported, and what was found before it is remembered")
	}
	_, err := unix.Write(p[1], []byte{0})
	f.must(err)
	if known() {
		t.Error("something has happened that was not read yet, and what was found before it is taken for true")
	}
}

// TestBrokenQueuesEndTheirQueuePairs: when the device gives up a completion queue or a shared
// receive queue, the queue pairs that use it are flushed and their owners are notified. Others go
// on.
func TestBrokenQueuesEndTheirQueuePairs(t *testing.T) {
	for _, c := range []struct {
		why    string
		object func(f *fake) any
		event  uint32
		ends   bool
	}{
		{"its completion queue", func(f *fake) any { return f.cq.parts[0] }, hca.EventCQError, true},
		{"its shared receive queue", func(f *fake) any { f.q.srq = &sharedQueue{dev: f.d}; return f.q.srq }, hca.EventSRQError, true},
		{"another completion queue", func(f *fake) any { return &cqPart{q: f.cq} }, hca.EventCQError, false},
		{"another shared receive queue", func(f *fake) any { return &sharedQueue{dev: f.d} }, hca.EventSRQError, false},
	} {
		f := newFake(t)
		f.must(f.q.PostSend(&verbs.SendWR{ID: 1}))
		var events []verbs.QPEvent
		f.q.OnEvent(func(ev verbs.QPEvent) { events = append(events, ev) })
		f.d.handles[5] = c.object(f)
		f.d.handleAsync(hca.Event{Object: 5, Type: c.event})
		if ended := len(events) == 1 && events[0] == verbs.QPFatal; ended != c.ends {
			t.Errorf("%s: events %v", c.why, events)
		}
		if wc := f.poll(); (len(wc) == 1 && wc[0].Status == verbs.StatusFlushed) != c.ends {
			t.Errorf("%s: completed %+v", c.why, wc)
		}
	}
}
