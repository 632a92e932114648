package uverbs

import (
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// The device's flags are 16 bits of a word. The rest of the word stays when the device takes an
// element.
func siwTake(q *siwQueue, n uint64) {
	h := loadAs[siwHead](q.headAt(n))
	h.Flags = 0
	storeAs(q.headAt(n), h)
}

func TestSiwSendQueueGoesRound(t *testing.T) {
	raw, err := newSiwQueue(siwMemory(4, sizeOf[siwSQE]()), 4, sizeOf[siwSQE](), siwSQEHead)
	if err != nil {
		t.Fatal(err)
	}
	q := &siwSends{siwQueue: raw}
	wr := &verbs.SendWR{Op: verbs.Write, RemoteAddr: 9, RKey: 8}
	for n := range uint64(100) {
		if !q.Put(n, wr, []place{{Addr: n, Length: 1, LKey: 2}, {Addr: 3, Length: 4, LKey: 5}}, 5, true) {
			t.Fatalf("no room for request %d of a queue that is empty", n)
		}
		w := *typedAt[siwSQE](q.mem, int(n%4)*sizeOf[siwSQE]())
		if w.ID != n || w.Head != (siwHead{Flags: siwValid | siwSignalled, NumSGE: 2, Opcode: siwOpWrite}) || w.RAddr != 9 ||
			w.RKey != 8 || w.SGE[0] != (place{Addr: n, Length: 1, LKey: 2}) || w.SGE[1] != (place{Addr: 3, Length: 4, LKey: 5}) {
			t.Fatalf("request %d is %+v", n, w)
		}
		if q.Taken(n) || q.Left() != 1 {
			t.Fatalf("request %d is taken before the device has looked", n)
		}
		siwTake(&q.siwQueue, n)
		if !q.Taken(n) || q.Left() != 0 {
			t.Fatalf("request %d is not taken", n)
		}
	}
	for range 4 {
		if !q.Put(0, wr, nil, 0, false) {
			t.Fatal("no room for four of four")
		}
	}
	if q.Put(0, wr, nil, 0, false) {
		t.Error("room for five of four")
	}
}

func TestSiwReads(t *testing.T) {
	raw, err := newSiwQueue(siwMemory(1, sizeOf[siwSQE]()), 1, sizeOf[siwSQE](), siwSQEHead)
	if err != nil {
		t.Fatal(err)
	}
	q := &siwSends{siwQueue: raw}
	w := typedAt[siwSQE](q.mem, 0)
	q.Put(0, &verbs.SendWR{Op: verbs.Read}, []place{{Addr: 1, Length: 23, LKey: 2}}, 23, true)
	if w.Head != (siwHead{Flags: siwValid | siwSignalled, NumSGE: 1, Opcode: siwOpRead}) {
		t.Errorf("a Read is %+v", w.Head)
	}
	siwTake(&q.siwQueue, 0)
	q.Put(1, &verbs.SendWR{Op: verbs.Read}, nil, 0, true)
	if w.Head.Opcode != siwOpWrite || w.SGE[0] != (place{}) {
		t.Errorf("a Read of no bytes is %+v of %+v: siw answers one with bytes that nobody has asked for", w.Head, w.SGE[0])
	}
}

func TestSiwCompletionsComeInPostingOrder(t *testing.T) {
	f := newFake(t)
	f.d.siw = true
	ring, err := newSiwCompletions(siwMemory(8, sizeOf[siwCQE]()), 8)
	f.must(err)
	f.cq.parts[0].ring = ring
	puts := 0
	complete := func(id uint64, status uint16) {
		w := typedAt[siwCQE](ring.mem, puts%8*sizeOf[siwCQE]())
		w.ID, w.QPID = id, 17
		storeAs(atomicWord(&w.Head), siwCQEHead{Flags: siwValid, Status: status})
		puts++
	}
	const flushed = 4
	// its owner wants no completion
	f.must(f.q.PostSend(&verbs.SendWR{ID: 1, Op: verbs.Read, SGL: []verbs.SGE{f.part(0, 64)}}))
	f.must(f.q.PostSend(&verbs.SendWR{ID: 2, Flags: verbs.Signaled, SGL: []verbs.SGE{f.part(0, 8)}}))
	f.must(f.q.PostSend(&verbs.SendWR{ID: 3, Op: verbs.Read, Flags: verbs.Signaled, SGL: []verbs.SGE{f.part(0, 64)}}))
	f.must(f.q.PostSend(&verbs.SendWR{ID: 4}))
	f.must(f.q.PostSend(&verbs.SendWR{ID: 5, Flags: verbs.Signaled}))
	complete(1, 0)
	complete(4, 0)
	f.want("Sends wait for the Reads before them")
	complete(0, 0)
	f.want("the silent Read lets the first Send go", verbs.WC{ID: 2, Op: verbs.Send, Bytes: 8})
	complete(2, flushed)
	f.want("the Read that failed, then the Send that had left", verbs.WC{ID: 3, Op: verbs.Read, Status: verbs.StatusFlushed},
		verbs.WC{ID: 5, Op: verbs.Send})
}

func TestSiwIsNeverMadeToWaitForReads(t *testing.T) {
	f := newFake(t)
	f.d.siw = true
	raw, err := newSiwQueue(siwMemory(8, sizeOf[siwSQE]()), 8, sizeOf[siwSQE](), siwSQEHead)
	f.must(err)
	q := &siwSends{siwQueue: raw}
	f.q.sq = q
	f.q.backlog.atOnce = 2
	has := func(why string, n uint64) {
		t.Helper()
		if q.puts != n {
			t.Fatalf("%s: the device has %d of them, want %d", why, q.puts, n)
		}
	}
	post := func(id uint64, op verbs.Opcode, flags verbs.SendFlags, inline string) {
		t.Helper()
		wr := verbs.SendWR{ID: id, Op: op, Flags: flags | verbs.Signaled, Inline: []byte(inline)}
		if op == verbs.Read {
			wr.Inline, wr.SGL = nil, []verbs.SGE{f.part(0, int(id))}
		}
		f.must(f.q.PostSend(&wr))
		clear(wr.Inline)
	}
	done := func(n uint64) { f.d.handleCQE(&cqe{Cookie: n, QPN: 17}) }
	post(10, verbs.Read, 0, "")
	post(11, verbs.Send, 0, "a")
	post(12, verbs.Read, verbs.Fence, "")
	has("Reads as many as the peer serves, and what is not fenced", 3)
	post(13, verbs.Read, 0, "")
	post(14, verbs.Send, 0, "b")
	post(15, verbs.Send, verbs.Fence, "fenced")
	post(16, verbs.Send, 0, "c")
	has("a Read too many, and what is behind it", 3)
	for n := range q.puts {
		siwTake(&q.siwQueue, n)
	}
	if n := f.q.firstUntaken(); n != 3 {
		t.Errorf("the device has taken %d, want 3: what it was not given it has not taken", n)
	}
	done(0)
	has("one Read is done: the third goes, and what is not fenced", 5)
	done(1)
	done(2)
	has("one Read is left", 5)
	done(3)
	has("none is left", 7)
	w := typedAt[siwSQE](q.mem, 5*sizeOf[siwSQE]())
	if got := string(q.mem[6*sizeOf[siwSQE]()-siwMaxInline:][:6]); w.ID != 5 || got != "fenced" {
		t.Errorf("request %d of %q, want 5 of what was inline when it was posted", w.ID, got)
	}
	f.q.flushOutstanding(f.q.firstUntaken())
	if n := len(f.poll()); n != 7 {
		t.Errorf("%d completions of 7 requests", n)
	}
}
