//go:build linux && (amd64 || arm64)

package native

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// fakeContext returns an adapter whose driver is the test: its functions are Go's, called from C.
func fakeContext(tb testing.TB) (a *adapter, provide func(off uintptr, fn any)) {
	tb.Helper()
	p, _ := libc(tb, "labs")
	mem, err := mapMemory(4096)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := newStaging()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { unmapOnce(&mem); s.release() })
	a = &adapter{library: p.lib, page: p, ctx: addressOf(mem), sends: s, queues: map[hca.Handle]*completions{}}
	for i := range a.objects {
		a.objects[i] = map[uintptr]*object{}
	}
	return a, func(off uintptr, fn any) {
		addr, ok := fn.(uintptr)
		if !ok {
			addr = purego.NewCallback(fn)
		}
		*typedAt[uintptr](mem, int(off)) = addr
	}
}

// newQueues returns a completion queue and a send queue of a fake.
func newQueues(tb testing.TB, a *adapter, qp uintptr) (*completions, *sendQueue) {
	tb.Helper()
	mem, err := mapMemory(polled * sizeOf[hca.WC]())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { unmapOnce(&mem) })
	cq := &completions{a: a, mem: mem}
	return cq, &sendQueue{a: a, qp: qp, num: 17, cq: cq}
}

// walk returns the cookies and addresses of a chain of sends.
func walk(wr uintptr) (cookies []uint64, addrs []uintptr) {
	for ; wr != 0; wr = uintptr(peek[sendWR](wr, 0).Next) {
		cookies, addrs = append(cookies, peek[sendWR](wr, 0).WRID), append(addrs, wr)
	}
	return cookies, addrs
}

// TestRefusedSends: a send that the library refuses completes with an error, and those after it are
// flushed. Those before it were posted, and complete as the device reports.
func TestRefusedSends(t *testing.T) {
	for _, c := range []struct {
		wr   verbs.SendWR
		want verbs.Status
	}{
		{verbs.SendWR{Op: verbs.Write}, verbs.StatusLocQPOp},
		{verbs.SendWR{Op: verbs.AtomicFetchAdd, RemoteAddr: 16}, verbs.StatusLocQPOp},
		{verbs.SendWR{Op: verbs.AtomicFetchAdd, RemoteAddr: 12}, verbs.StatusRemInvReq},
	} {
		a, provide := fakeContext(t)
		cq, q := newQueues(t, a, 5)
		provide(contextPollCQ, func(uintptr, uintptr, uintptr) uintptr { return 0 })
		provide(contextPostSend, func(qp, wr, bad uintptr) uintptr {
			_, addrs := walk(wr)
			*(*uintptr)(pointerTo(bad)) = addrs[1]
			return uintptr(unix.EINVAL)
		})
		q.Put(1, &verbs.SendWR{}, nil, 0, true)
		q.Put(2, &c.wr, nil, 8, true)
		q.Put(3, &verbs.SendWR{}, nil, 0, false)
		if err := a.Announce(0, q); err != hca.ErrRefused { //nolint:errorlint // it is not wrapped
			t.Errorf("%v", err)
		}
		var got []hca.CQE
		for e := (hca.CQE{}); !cq.Empty() && cq.Take(&e); {
			got = append(got, e)
		}
		want := []hca.CQE{{Cookie: 2, QPN: 17, Status: c.want}, {Cookie: 3, QPN: 17, Status: verbs.StatusFlushed}}
		if !slices.Equal(got, want) {
			t.Errorf("%v: completed %+v, want %+v", c.wr.Op, got, want)
		}
		if len(a.sends.free) != slots {
			t.Errorf("%d slots are free", len(a.sends.free))
		}
	}
}

// TestMoreSendsThanSlots: sends are posted in order, each once, whatever their number in a turn.
func TestMoreSendsThanSlots(t *testing.T) {
	a, provide := fakeContext(t)
	posted := map[uintptr][]uint64{}
	provide(contextPostSend, func(qp, wr, _ uintptr) uintptr {
		cookies, _ := walk(wr)
		posted[qp] = append(posted[qp], cookies...)
		return 0
	})
	_, one := newQueues(t, a, 1)
	_, two := newQueues(t, a, 2)
	const n = 3*slots + 7
	for i := range uint64(n) {
		one.Put(i, &verbs.SendWR{}, nil, 0, true)
		if i%3 == 0 {
			two.Put(i, &verbs.SendWR{}, nil, 0, true)
		}
	}
	for _, q := range []*sendQueue{one, two} {
		if err := a.Announce(0, q); err != nil {
			t.Error(err)
		}
	}
	if len(posted[1]) != n || !slices.IsSorted(posted[1]) || len(posted[2]) != (n+2)/3 || !slices.IsSorted(posted[2]) {
		t.Errorf("posted %v", posted)
	}
	_ = one.Close()
	if len(a.sends.free) != slots {
		t.Errorf("%d slots are free", len(a.sends.free))
	}
}

// TestInlineBytesAreCopied: the caller may overwrite its bytes after Put.
func TestInlineBytesAreCopied(t *testing.T) {
	a, provide := fakeContext(t)
	var got string
	provide(contextPostSend, func(_, wr, _ uintptr) uintptr {
		w := peek[sendWR](wr, 0)
		s := peek[hca.Place](uintptr(w.SGList), 0)
		if w.SendFlags != hca.SendInline|hca.SendSignaled|hca.SendSolicited || w.NumSGE != 1 {
			t.Errorf("%+v", w)
		}
		got = stringAt(uintptr(s.Addr), int(s.Length))
		return 0
	})
	_, q := newQueues(t, a, 1)
	b := []byte("inline")
	q.Put(1, &verbs.SendWR{Inline: b, Flags: verbs.Solicited}, nil, 6, true)
	copy(b, "others")
	if err := a.Announce(0, q); err != nil || got != "inline" {
		t.Errorf("%v, sent %q", err, got)
	}
}

// TestPoll: completions polled by one call are taken one by one. A failing driver has none.
func TestPoll(t *testing.T) {
	a, provide := fakeContext(t)
	left, next := polled+3, uint64(0)
	provide(contextPollCQ, func(_, n, mem uintptr) uintptr {
		if left < 0 {
			return ^uintptr(0)
		}
		k := min(left, int(n))
		left -= k
		for i := range k {
			flags := uint32(hca.WCWithImm | hca.WCGRH)
			if next%2 == 1 {
				flags = hca.WCWithInv | hca.WCGRH
			}
			*(*hca.WC)(pointerTo(mem + uintptr(i*sizeOf[hca.WC]()))) = hca.WC{
				WRID: next, Status: 99, QPNum: 7, ByteLen: 3, Ex: [4]byte{1, 2, 3, 4}, WCFlags: flags, SrcQP: 8,
			}
			next++
		}
		return uintptr(k)
	})
	cq, _ := newQueues(t, a, 1)
	var e hca.CQE
	for i := range uint64(polled + 3) {
		want := hca.CQE{Cookie: i, QPN: 7, Status: verbs.StatusGeneral, Bytes: 3, Imm: 0x01020304, HasImm: true, SrcQPN: 8, GRH: true}
		want.Last = i == polled+2 // the last completion of a poll that could have returned more
		if i%2 == 1 {
			want.HasImm, want.Imm, want.InvalidatedRKey = false, 0, binary.NativeEndian.Uint32([]byte{1, 2, 3, 4})
		}
		if cq.Empty() || !cq.Take(&e) || e != want {
			t.Fatalf("completion %d is %+v", i, e)
		}
	}
	left = -1
	if !cq.Empty() || cq.Take(&e) {
		t.Error("a completion of a driver that has failed")
	}
}

// TestAcknowledgements: events of a completion queue are acknowledged together, and all of them
// before the queue is destroyed: the library would wait for them.
func TestAcknowledgements(t *testing.T) {
	a, _ := fakeContext(t)
	var log []int
	a.ackCQEvents.addr = purego.NewCallback(func(cq, n uintptr) uintptr { log = append(log, int(n)); return 0 })
	a.destroyCQ.addr = purego.NewCallback(func(cq uintptr) uintptr { log = append(log, -1); return 0 })
	a.getCQEvent.addr = purego.NewCallback(func(_, cq, event uintptr) uintptr {
		*(*uint64)(pointerTo(cq)), *(*uint64)(pointerTo(event)) = 0x1000, 42
		return 0
	})
	a.recordObject(cqObject, 0x1000, nil)
	for range ackAfter + 5 {
		if event, err := a.NextCompletion(); event != 42 || err != nil {
			t.Fatalf("%d, %v", event, err)
		}
	}
	if err := a.DestroyCQ(0x1000); err != nil {
		t.Error(err)
	}
	if !slices.Equal(log, []int{ackAfter, 5, -1}) {
		t.Errorf("acknowledged and destroyed: %v", log)
	}
	if err := a.DestroyCQ(0x1000); err != unix.EINVAL { //nolint:errorlint // it is not wrapped
		t.Errorf("destroyed twice: %v", err)
	}
}

// idle returns queues of an adapter whose driver's functions do nothing. labs of 0 is 0.
func idle(tb testing.TB) (*completions, *sendQueue) {
	a, provide := fakeContext(tb)
	_, labs := libc(tb, "labs")
	provide(contextPostSend, labs)
	provide(contextPollCQ, labs)
	return newQueues(tb, a, 0)
}

func TestPostingAndPollingDoNotAllocate(t *testing.T) {
	cq, q := idle(t)
	wr, list, e := &verbs.SendWR{}, make([]hca.Place, 1), hca.CQE{}
	if n := testing.AllocsPerRun(100, func() {
		q.Put(1, wr, list, 8, true)
		_ = q.a.Announce(0, q)
		cq.Take(&e)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := len(q.a.sends.queues); n != 0 {
		t.Errorf("%d queues have sends", n)
	}
}

// BenchmarkTurn measures the cost of a send without the driver's work: it is put, posted, and
// polled.
func BenchmarkTurn(b *testing.B) {
	cq, q := idle(b)
	wr, list, e := &verbs.SendWR{}, make([]hca.Place, 1), hca.CQE{}
	b.ReportAllocs()
	for b.Loop() {
		q.Put(1, wr, list, 8, true)
		_ = q.a.Announce(0, q)
		cq.Take(&e)
	}
}

// TestDroppedSends: nothing is posted to a queue pair that is being destroyed.
func TestDroppedSends(t *testing.T) {
	a, provide := fakeContext(t)
	var posted []uintptr
	provide(contextPostSend, func(qp, _, _ uintptr) uintptr { posted = append(posted, qp); return 0 })
	_, one := newQueues(t, a, 1)
	_, two := newQueues(t, a, 2)
	one.Put(1, &verbs.SendWR{}, nil, 0, true)
	one.Drop()
	for i := range uint64(slots + 1) {
		two.Put(i, &verbs.SendWR{}, nil, 0, true)
	}
	if !slices.Equal(posted, []uintptr{2}) {
		t.Errorf("posted to %v, want the second queue pair only", posted)
	}
}

// TestManyQueuesInOneCrossing: each queue gets its own result.
func TestManyQueuesInOneCrossing(t *testing.T) {
	a, provide := fakeContext(t)
	provide(contextPollCQ, func(uintptr, uintptr, uintptr) uintptr { return 0 })
	provide(contextPostSend, func(qp, wr, bad uintptr) uintptr {
		if qp%5 != 0 {
			return 0
		}
		*(*uintptr)(pointerTo(bad)) = wr
		return uintptr(unix.ENOMEM)
	})
	var queues []*sendQueue
	for i := range uintptr(2*maxCalls + 1) {
		_, q := newQueues(t, a, i)
		q.Put(uint64(i), &verbs.SendWR{}, nil, 0, true)
		queues = append(queues, q)
	}
	for i, q := range queues {
		err := a.Announce(0, q)
		var e hca.CQE
		if refused := i%5 == 0; refused != (err != nil) || refused != q.cq.Take(&e) || refused && e.Cookie != uint64(i) {
			t.Errorf("queue %d: %v, completed %+v", i, err, e)
		}
	}
}

// TestArmingPolls: a completion before the request for an event is found in the same crossing, and
// a later one only by another poll.
func TestArmingPolls(t *testing.T) {
	a, provide := fakeContext(t)
	var log []string
	left := 0
	provide(contextReqNotify, func(_, only uintptr) uintptr {
		log = append(log, "arm")
		return 0
	})
	provide(contextPollCQ, func(_, _, mem uintptr) uintptr {
		log = append(log, "poll")
		n := left
		left = 0
		return uintptr(n)
	})
	cq, _ := newQueues(t, a, 1)
	if !cq.Empty() {
		t.Error("a completion of nothing")
	}
	left = 1
	var e hca.CQE
	err := a.ReqNotify(0, cq, false)
	if len(log) != 3 {
		t.Errorf("%v: the queue is not polled in the same crossing", log)
	}
	if err != nil || cq.Empty() || !cq.Take(&e) || !e.Last || cq.Take(&e) {
		t.Error("the completion that came before the arming was not found")
	}
	if want := []string{"poll", "arm", "poll", "poll"}; !slices.Equal(log, want) {
		t.Errorf("%v, want %v", log, want)
	}
}

// TestTakeBelievesNothing: after an idle turn, the end of a connection may be read next.
// Completions before it must be found then, although no event of the queue was read.
func TestTakeBelievesNothing(t *testing.T) {
	for _, sends := range []bool{false, true} {
		a, provide := fakeContext(t)
		left := 0
		provide(contextPostSend, func(uintptr, uintptr, uintptr) uintptr { return 0 })
		provide(contextReqNotify, func(_, _ uintptr) uintptr { return 0 })
		provide(contextPollCQ, func(_, _, mem uintptr) uintptr {
			n := left
			left = 0
			return uintptr(n)
		})
		cq, q := newQueues(t, a, 1)
		a.Foresee(0, cq, false)
		if sends {
			q.Put(1, &verbs.SendWR{}, nil, 0, true)
			if err := a.Announce(0, q); err != nil {
				t.Error(err)
			}
		}
		if !cq.Empty() || a.ReqNotify(0, cq, false) != nil || !cq.Empty() {
			t.Error("a completion of nothing")
		}
		left = 1
		var e hca.CQE
		if !cq.Take(&e) {
			t.Errorf("with sends %v: a completion that came behind the turn is not taken", sends)
		}
	}
}

// TestTurnIsOneCrossing: the post, the poll and the request for an event are one crossing. No event
// is requested while there are completions.
func TestTurnIsOneCrossing(t *testing.T) {
	a, provide := fakeContext(t)
	var log []string
	left := []int{0, 0}
	provide(contextPostSend, func(uintptr, uintptr, uintptr) uintptr { log = append(log, "post"); return 0 })
	provide(contextReqNotify, func(_, _ uintptr) uintptr { log = append(log, "ask"); return 0 })
	provide(contextPollCQ, func(_, _, mem uintptr) uintptr {
		log = append(log, "poll")
		n := left[0]
		left = append(left[1:], 0)
		return uintptr(n)
	})
	turn := func(n ...int) (empty bool) {
		log, left = nil, append(n, 0, 0)
		cq, q := newQueues(t, a, 1)
		q.Put(1, &verbs.SendWR{}, nil, 0, true)
		a.Foresee(0, cq, false)
		if err := a.Announce(0, q); err != nil {
			t.Error(err)
		}
		if empty = cq.Empty(); empty {
			if err := a.ReqNotify(0, cq, false); err != nil {
				t.Error(err)
			}
			empty = cq.Empty()
		}
		return empty
	}
	if !turn(0, 0) || !slices.Equal(log, []string{"post", "poll", "ask", "poll"}) {
		t.Errorf("nothing comes: %v", log)
	}
	if turn(1) || !slices.Equal(log, []string{"post", "poll"}) {
		t.Errorf("something is there: %v", log)
	}
	if turn(0, 1) || !slices.Equal(log, []string{"post", "poll", "ask", "poll"}) {
		t.Errorf("something comes before the event is asked for: %v", log)
	}
	if n := len(a.foreseen); n != 0 {
		t.Errorf("%d queues are still foreseen", n)
	}
}

// TestAddressHandleOfASend: a queued datagram is posted before its address handle is destroyed. The
// library reads the handle's memory then, and frees it with the handle.
func TestAddressHandleOfASend(t *testing.T) {
	a, provide := fakeContext(t)
	var log []string
	provide(contextPollCQ, func(uintptr, uintptr, uintptr) uintptr { return 0 })
	provide(contextPostSend, func(_, wr, _ uintptr) uintptr {
		log = append(log, "post")
		return 0
	})
	a.destroyAH.addr = purego.NewCallback(func(uintptr) uintptr { log = append(log, "destroy"); return 0 })
	_, q := newQueues(t, a, 1)
	q.ud = true
	a.recordObject(ahObject, 0x1000, nil)
	q.Put(1, &verbs.SendWR{}, nil, 0, true)
	if err := a.DestroyAH(0x1000); err != nil {
		t.Error(err)
	}
	if err := a.Announce(0, q); err != nil || !slices.Equal(log, []string{"post", "destroy"}) {
		t.Errorf("%v, %v", log, err)
	}
}

// TestRefusedWithoutASend: a library that reports no refused send, or one outside the chain, has
// refused them all. Each gets a completion.
func TestRefusedWithoutASend(t *testing.T) {
	for _, named := range []uintptr{0, 0x1234} {
		a, provide := fakeContext(t)
		provide(contextPollCQ, func(uintptr, uintptr, uintptr) uintptr { return 0 })
		provide(contextPostSend, func(_, _, bad uintptr) uintptr {
			*(*uintptr)(pointerTo(bad)) = named
			return uintptr(unix.EINVAL)
		})
		cq, q := newQueues(t, a, 1)
		q.Put(1, &verbs.SendWR{}, nil, 0, true)
		q.Put(2, &verbs.SendWR{}, nil, 0, true)
		if err := a.Announce(0, q); err != hca.ErrRefused { //nolint:errorlint // it is not wrapped
			t.Errorf("%v", err)
		}
		want := []hca.CQE{
			{Cookie: 1, QPN: 17, Status: verbs.StatusLocQPOp}, {Cookie: 2, QPN: 17, Status: verbs.StatusFlushed},
		}
		if !slices.Equal(cq.made, want) {
			t.Errorf("%#x is named: completed %+v, want %+v", named, cq.made, want)
		}
	}
}
