package core_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// ask carries the initiator's output to the responder, but nothing back yet.
func (r *remote) ask() []wire.Opcode {
	out := bytes.Clone(r.a.take(1 << 30))
	r.b.input(out, whole)
	r.a.out = nil
	return opcodes(r.a.t, out)
}

// answer carries the responder's output to the initiator.
func (r *remote) answer() {
	r.b.at(100 * time.Millisecond) // it may send now
	r.b.c.Timeout(r.b.now)
	r.a.input(r.b.take(1<<30), whole)
	r.b.out = nil
}

func wantOps(t *testing.T, why string, got []wire.Opcode, want ...wire.Opcode) {
	t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: on the wire: %v, want %v", why, got, want)
	}
}

const (
	opS = wire.OpSend
	opW = wire.OpWrite
	opR = wire.OpReadRequest
)

// TestCompletionOrder: a Send and a Write behind a Read overtake it on the wire; their completions
// do not (siw's do).
func TestCompletionOrder(t *testing.T) {
	r := connectMemory(t, 100, core.Config{}, core.Config{})
	for i := range 3 {
		r.b.postRecv(uint64(i), 10)
	}
	r.a.postSend(1, "one", 0)
	r.a.post(r.wr(2, verbs.Read, 0, 0, 10))
	r.a.postSend(3, "three", 0)
	r.a.post(r.wr(4, verbs.Write, 0, 50, 10))
	r.a.post(r.wr(5, verbs.Read, 20, 20, 10))
	r.a.postSend(6, "six", 0)
	wantOps(t, "nothing waits", r.ask(), opS, opR, opS, opW, opR, opS)
	r.a.wantDone("handed over", "s1:success/3")
	r.b.wantDone("received", "r0:success/3 r1:success/5 r2:success/3")
	out := bytes.Clone(r.bSays(t))
	first := bytes.Index(out[1:], []byte{0, 14 + 10, 0xc1, 0x42}) + 1
	r.a.input(out[:first], whole)
	r.a.wantDone("the first Read is answered", "s2:success/10 s3:success/5 s4:success/10")
	r.a.input(out[first:], whole)
	r.a.wantDone("the second Read is answered", "s5:success/10 s6:success/3")
}

// bSays returns the output of the responder that is not yet carried over.
func (r *remote) bSays(t *testing.T) []byte {
	t.Helper()
	r.b.at(100 * time.Millisecond)
	r.b.c.Timeout(r.b.now)
	r.b.out = nil
	return r.b.take(1 << 30)
}

// TestReadDepth: there are never more Reads outstanding than negotiated, whatever is posted. Work
// requests behind a waiting Read wait too.
func TestReadDepth(t *testing.T) {
	for depth := 1; depth <= 5; depth++ {
		r := connectMemory(t, 100, core.Config{ORD: uint16(depth)}, core.Config{})
		ord := min(depth, 4) // the responder's IRD
		if depth < 4 {
			ord = 4 // of connectMemory
		}
		r.b.postRecv(1, 10)
		for i := range ord + 2 {
			r.a.post(r.wr(uint64(i), verbs.Read, i, i, 1))
		}
		r.a.postSend(9, "behind", 0)
		var want []wire.Opcode
		for range ord {
			want = append(want, opR)
		}
		wantOps(t, fmt.Sprintf("ORD %d", ord), r.ask(), want...)
		if r.a.c.Pending() {
			t.Errorf("ORD %d: output pending while all Reads are out", ord)
		}
		r.answer()
		wantOps(t, "the rest", r.ask(), opR, opR, opS)
		r.answer()
		if len(r.a.done) != ord+3 || r.a.closed+r.b.closed > 0 {
			t.Errorf("ORD %d: %s, %v, %v", ord, r.a.statuses(), r.a.err, r.b.err)
		}
	}
}

// TestReadDepthOne: a depth of one, and a depth of zero. With zero, posting a Read fails with
// EINVAL, because the Read could never be sent.
func TestReadDepthOne(t *testing.T) {
	pair := func(ird uint16) (a, b *side) {
		a, b = newSide(t, "initiator", core.Config{Initiator: true, IRD: 4, ORD: 4}), newSide(t, "responder", core.Config{})
		b.onRequest = func(core.Request) {
			if err := b.c.Accept(t0, nil, ird, 4); err != nil {
				t.Fatal(err)
			}
		}
		a.c.BeginSetup(t0)
		b.c.BeginSetup(t0)
		move(a, b, 1<<30, whole)
		return a, b
	}
	empty := func(id uint64) *verbs.SendWR { return &verbs.SendWR{ID: id, Op: verbs.Read, Flags: verbs.Signaled} }
	a, b := pair(1)
	for id := range uint64(3) {
		a.post(empty(id))
	}
	for id := range 3 {
		wantOps(t, "one at a time", opcodes(t, a.take(1<<30)), opR)
		b.input(a.fresh(), whole)
		a.input(b.take(1<<30), whole)
		b.out = nil
		a.wantDone("answered", fmt.Sprintf("s%d:success/0", id))
	}
	a, _ = pair(0)
	wantErrno(t, "Read where the peer serves none", a.c.PostSend(empty(1)), unix.EINVAL)
	a.quiet("a refused Read")
}

// TestFence: a fenced work request waits until every earlier Read is complete, and those behind it
// wait too. Without a fence or without an earlier Read nothing waits (RFC 5040 section 5.5).
func TestFence(t *testing.T) {
	for _, op := range []verbs.Opcode{verbs.Send, verbs.SendWithInvalidate, verbs.Write, verbs.Read} {
		r := connectMemory(t, 100, core.Config{}, core.Config{})
		for i := range 3 {
			r.b.postRecv(uint64(i), 10)
		}
		fenced := r.wr(3, op, 0, 50, 10)
		if op == verbs.SendWithInvalidate {
			fenced.RKey = 0x3333
			r.farRegs.Add(&verbs.MR{LKey: 0x3333, Access: everyAccess})
		}
		fenced.Flags |= verbs.Fence
		r.a.post(r.wr(1, verbs.Read, 0, 0, 10))
		r.a.post(r.wr(2, verbs.Read, 20, 20, 10))
		r.a.post(fenced)
		r.a.postSend(4, "behind", 0)
		wantOps(t, "the fence waits", r.ask(), opR, opR)
		out := r.bSays(t)
		r.a.input(out[:len(out)-1], whole)
		wantOps(t, "one byte of the last Read is missing", r.ask())
		r.a.wantDone("the first Read", "s1:success/10")
		r.a.input(out[len(out)-1:], whole)
		r.b.out = nil
		if got := r.ask(); len(got) != 2 {
			t.Errorf("opcode %d: behind the fence: %v", op, got)
		}
		r.answer()
		r.a.wantDone("all", "s2:success/10 s3:success/10 s4:success/6")

		fenced.ID, fenced.RKey = 5, r.far.RKey
		if op == verbs.SendWithInvalidate {
			continue
		}
		r.a.post(fenced)
		if got := r.ask(); len(got) != 1 {
			t.Errorf("opcode %d: a fence without Reads waits: %v", op, got)
		}
	}
}

// TestFenceBehindUnfenced: Reads posted behind a fence do not delay it.
func TestFenceBehindUnfenced(t *testing.T) {
	r := connectMemory(t, 100, core.Config{}, core.Config{})
	r.b.postRecv(1, 10)
	wr := r.wr(1, verbs.Send, 0, 0, 1)
	wr.Flags |= verbs.Fence
	r.a.post(wr)
	r.a.post(r.wr(2, verbs.Read, 0, 0, 1))
	wantOps(t, "nothing to wait for", r.ask(), opS, opR)
}

// TestInterleaving: a tagged and an untagged message may be in progress together (RFC 5041 section
// 5.3).
func TestInterleaving(t *testing.T) {
	type h = wire.Header
	r := connectMemory(t, 100, core.Config{}, core.Config{})
	r.b.postRecv(1, 10)
	r.b.postRecv(2, 10)
	stag, to := r.far.RKey, r.far.Addr
	for _, ulpdu := range [][]byte{
		sendSeg(h{MSN: 1}, "ab"), writeSeg(stag, to, false, 3), readSeg(readHead, wire.ReadRequest{SinkSTag: 1}), sendSeg(h{MSN: 1, MO: 2}, ""),
		sendSeg(h{Last: true, MSN: 1, MO: 2}, "cd"), sendSeg(h{MSN: 2}, "ef"), writeSeg(stag, to+3, true, 4),
		writeSeg(stag, to+50, true, 5), writeSeg(0, 0, true, 0), sendSeg(h{Last: true, MSN: 2, MO: 2}, ""),
	} {
		r.b.input(framed(ulpdu, false), whole)
	}
	r.b.wantDone("Sends between Writes", "r1:success/4 r2:success/2")
	want := pattern(100)
	copy(want, pattern(3))
	copy(want[3:], pattern(4))
	copy(want[50:], pattern(5))
	if r.b.closed != 0 || !bytes.Equal(r.far.Bytes, want) {
		t.Errorf("Writes between Sends: %v, %x", r.b.err, r.far.Bytes)
	}

	r = connectMemory(t, 100, core.Config{}, core.Config{})
	r.a.postRecv(1, 10)
	r.a.post(r.wr(9, verbs.Read, 10, 10, 6))
	r.ask()
	stag, to = r.near.RKey, r.near.Addr+10
	for _, ulpdu := range [][]byte{
		responseSeg(stag, to, false, 3), sendSeg(h{MSN: 1}, "ab"), responseSeg(stag, to+3, true, 3), sendSeg(h{Last: true, MSN: 1, MO: 2}, "c"),
	} {
		r.a.input(framed(ulpdu, false), whole)
	}
	r.a.wantDone("a Send between Read Responses", "s9:success/6 r1:success/3")
}

// TestFlushOnce: however a connection ends, each posted work request completes once, flushed, in
// posting order. This includes unsignalled ones. Afterwards no work request is accepted and no
// completion is missing.
func TestFlushOnce(t *testing.T) {
	ends := map[string]func(r *remote){
		"Abort":      func(r *remote) { r.a.c.Abort(r.a.now) },
		"Disconnect": func(r *remote) { r.a.c.Disconnect(r.a.now) },
		"FIN":        func(r *remote) { r.a.c.InputEnd(r.a.now, nil) },
		"RST":        func(r *remote) { r.a.c.InputEnd(r.a.now, unix.ECONNRESET) },
		"Terminate":  func(r *remote) { r.b.c.Input(r.b.now, make([]byte, 8)); r.answer() },
		"bad frame":  func(r *remote) { r.a.c.Input(r.a.now, make([]byte, 8)) },
		"the peer stalls": func(r *remote) {
			r.a.c.Input(r.a.now, []byte{0})
			r.a.at(time.Hour)
			r.a.c.Timeout(r.a.now)
		},
	}
	const f = ":work request flushed/0 "
	for name, end := range ends {
		r := connectMemory(t, 100, core.Config{}, core.Config{})
		r.a.name = name
		for i := range 2 {
			r.a.postRecv(uint64(i), 10)
		}
		r.b.postRecv(9, 10)
		r.a.post(r.wr(10, verbs.Read, 0, 0, 10)) // handed over, not answered
		r.a.postSend(11, "gone", 0)              // handed over; its completion waits for the Read's
		r.ask()
		for id := uint64(12); id < 15; id++ { // never handed over
			wr := r.wr(id, verbs.Opcode(id-11), 0, 0, 1)
			wr.Flags &^= verbs.Signaled
			r.a.post(wr)
		}
		end(r)
		recvs, sends := "r0"+f+"r1"+f, "s10"+f+"s11"+f+"s12"+f+"s13"+f+"s14"+f
		want := recvs + sends
		if name == "Disconnect" { // data that the peer still sends may be received
			r.a.wantDone(name, sends[:len(sends)-1])
			wantErrno(t, name, r.a.c.PostSend(&sendNothing), unix.EINVAL)
			r.a.c.InputEnd(r.a.now, nil)
			want = recvs
		}
		r.a.wantDone(name, want[:len(want)-1])
		if r.a.closed != 1 {
			t.Errorf("%s: closed %d", name, r.a.closed)
		}
		wantOver(t, r.a)
		for _, late := range []func(){
			func() { r.answer() }, func() { r.a.c.Input(r.a.now, send(1, "late")) }, func() { r.a.c.InputEnd(r.a.now, nil) },
			func() { r.a.c.Timeout(t0.Add(time.Hour)) }, func() { r.a.c.Abort(t0) }, func() { r.a.c.Disconnect(t0) }, func() { r.a.take(1 << 30) },
		} {
			late()
		}
		r.a.wantDone(name+": nothing is owed", "")
	}
}

// TestReceivesBeforeSetup: on both sides the first messages use, in order, the receives that were
// posted during the set-up: before BeginSetup, while the Request is unanswered, and before Accept.
func TestReceivesBeforeSetup(t *testing.T) {
	a, b := newSide(t, "initiator", core.Config{Initiator: true}), newSide(t, "responder", core.Config{})
	a.postRecv(1, 9)
	b.postRecv(1, 9)
	a.c.BeginSetup(t0)
	b.c.BeginSetup(t0)
	a.postRecv(2, 9)
	b.postRecv(2, 9)
	b.onRequest = func(core.Request) {
		b.postRecv(3, 9)
		if err := b.c.Accept(t0, nil, 0, 0); err != nil {
			t.Fatal(err)
		}
		b.postRecv(4, 9)
		b.postSend(1, "before Reply"[:6], 0)
	}
	a.onEstablished = func() {
		a.postRecv(3, 9)
		for i := range 4 {
			a.postSend(uint64(i), "x", 0)
		}
	}
	move(a, b, 1<<30, whole)
	a.wantDone("initiator", "s0:success/1 s1:success/1 s2:success/1 s3:success/1 r1:success/6")
	b.wantDone("responder", "r1:success/1 r2:success/1 r3:success/1 r4:success/1 s1:success/6")
}

// TestUnsignalled: success is not reported, but failure is. The place in the queue is free again
// when the bytes have been handed over.
func TestUnsignalled(t *testing.T) {
	r := connectMemory(t, 100, core.Config{Queues: core.Queues{SendWRs: 2}}, core.Config{})
	quiet := func(id uint64, op verbs.Opcode) *verbs.SendWR {
		wr := r.wr(id, op, 0, 0, 5)
		wr.Flags = 0
		return wr
	}
	for i := range 10 {
		r.b.postRecv(uint64(i), 10)
	}
	for id := range uint64(10) {
		r.a.post(quiet(id, verbs.Send))
		r.ask()
	}
	r.a.wantDone("ten Sends through a queue of two", "")
	r.a.post(quiet(20, verbs.Read))
	r.a.post(quiet(21, verbs.Write))
	r.ask()
	wantErrno(t, "a Read that is not answered keeps its place and that of what is behind", r.a.c.PostSend(quiet(22, verbs.Send)), unix.ENOMEM)
	r.answer()
	r.a.wantDone("answered", "")
	r.a.post(quiet(23, verbs.Read))
	r.a.postSend(24, "signalled", 0)
	r.ask()
	r.b.c.Abort(t0)
	r.a.c.InputEnd(t0, nil)
	r.a.wantDone("failure is reported", "s23:work request flushed/0 s24:work request flushed/0")
}

// TestInline: every operation that sends inline bytes copies them when it is posted. One byte above
// the limit is refused.
func TestInline(t *testing.T) {
	for _, n := range []int{0, 1, core.MaxInline} {
		r := connectMemory(t, 1000, core.Config{}, core.Config{})
		got := r.b.postRecv(1, core.MaxInline)
		b := pattern(n)
		r.a.post(&verbs.SendWR{ID: 1, Op: verbs.Write, Flags: verbs.Signaled, Inline: b, RKey: r.far.RKey, RemoteAddr: r.far.Addr + 7})
		r.a.post(&verbs.SendWR{ID: 2, Flags: verbs.Signaled, Inline: b})
		clear(b)
		move(r.a, r.b, 1<<30, whole)
		if !bytes.Equal(got.Bytes[:n], pattern(n)) || !bytes.Equal(r.far.Bytes[7:7+n], pattern(n)) {
			t.Errorf("%d inline bytes did not arrive", n)
		}
		r.a.wantDone("inline", fmt.Sprintf("s1:success/%d s2:success/%d", n, n))
	}
	a, _ := connect(t, core.Config{}, core.Config{})
	for _, op := range []verbs.Opcode{verbs.Send, verbs.Write} {
		wantErrno(t, "too much inline", a.c.PostSend(&verbs.SendWR{Op: op, Inline: make([]byte, core.MaxInline+1)}), unix.EINVAL)
	}
}

// TestSharedByTwo: two connections take receives from one queue in the order in which their
// messages begin. When one connection ends, the receive that its message had begun to fill is
// completed. The other receives are not affected.
func TestSharedByTwo(t *testing.T) {
	q := &srq{}
	for id := range uint64(4) {
		*q = append(*q, verbs.RecvWR{ID: id, SGE: verbs.SGE{MR: region(10), Length: 10}})
	}
	cfg := core.Config{Queues: core.Queues{SRQ: q}}
	_, b := connect(t, core.Config{}, cfg)
	_, c := connect(t, core.Config{}, cfg)
	half := fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1}, 'a')
	b.c.Input(t0, half)
	c.c.Input(t0, send(1, "whole"))
	c.c.Input(t0, send(2, "again"))
	c.wantDone("messages of one go on while the other's is half here", "r1:success/5 r2:success/5")
	b.c.InputEnd(t0, nil)
	b.wantDone("the half message", "r0:work request flushed/0")
	if len(*q) != 1 || (*q)[0].ID != 3 {
		t.Errorf("the shared queue has %v left, want receive 3", *q)
	}
	c.c.Input(t0, send(3, "last"))
	c.wantDone("the last", "r3:success/4")
}

// TestReadyToReceiveRead: RFC 6581 section 9.2: the ready-to-receive Read takes MSN 1 and a place
// among the outstanding Reads, and completes nothing.
func TestReadyToReceiveRead(t *testing.T) {
	s := newSide(t, "initiator", core.Config{Initiator: true, PeerToPeer: true, IRD: 1, ORD: 1})
	s.c.BeginSetup(t0)
	s.take(1 << 30)
	s.c.Input(t0, rawFrame(rep, 0x10, 2, 4, word(0x8001, 0x4001)...))
	postReadInto(s, 1, region(0), 0, 0)
	s.postSend(2, "behind", 0)
	s.out = nil
	wantOps(t, "one Read at a time", opcodes(t, s.take(1<<30)), opR)
	s.c.Input(t0, framed(responseSeg(0, 0, true, 0), false))
	s.wantDone("the answer to the ready-to-receive Read", "")
	s.out = nil
	out := s.take(1 << 30)
	wantOps(t, "the application's", opcodes(t, out), opR, opS)
	if h, _, err := wire.ConsumeHeader(out[wire.LengthLen:]); err != nil || h.MSN != 2 {
		t.Errorf("the application's first Read has %+v, %v: want MSN 2", h, err)
	}
	s.c.Input(t0, framed(responseSeg(0, 0, true, 0), false))
	s.wantDone("the answer to the application's", "s1:success/0 s2:success/6")
	s.c.Input(t0, framed(responseSeg(0, 0, true, 0), false))
	if e, _ := s.err.(*core.Error); e == nil || termOf(e) != "1000" {
		t.Errorf("a third answer: %v: want 1000", s.err)
	}
}

// TestReadyToReceiveFromPeer: a responder answers an empty ready-to-receive Read even if it serves
// no other Reads, one at a time. The Read completes nothing and counts as MSN 1. It need not have
// been negotiated, because cxgb4 sends it in revision 1, too.
func TestReadyToReceiveFromPeer(t *testing.T) {
	for name, request := range map[string][]byte{
		"agreed on": rawFrame(req, 0x10, 2, 4, word(0x8000, 0x4000)...), "not agreed on": rawFrame(req, 0x10, 2, 4, word(0, 0)...),
	} {
		for what, then := range map[string]wire.ReadRequest{"not empty": {Size: 1}, "two at once": {}} {
			t.Run(name+"/"+what, func(t *testing.T) { readyToReceive(t, request, then) })
		}
	}
}

func readyToReceive(t *testing.T, request []byte, then wire.ReadRequest) {
	s := newSide(t, "responder", core.Config{})
	s.postRecv(1, 10)
	s.c.BeginSetup(t0)
	s.c.Input(t0, request)
	if err := s.c.Accept(t0, nil, 0, 0); err != nil {
		t.Fatal(err)
	}
	s.take(1 << 30)
	s.out = nil
	s.c.Input(t0, framed(readSeg(readHead, wire.ReadRequest{SourceSTag: 1}), false))
	wantOps(t, "the answer", opcodes(t, s.take(1<<30)), wire.OpReadResponse)
	s.wantDone("the ready-to-receive Read", "")
	if s.est != 1 {
		t.Errorf("established %d", s.est)
	}
	s.c.Input(t0, framed(readSeg(wire.Header{Last: true, QN: 1, MSN: 2}, wire.ReadRequest{}), false))
	if s.closed != 0 {
		t.Fatalf("a second empty Read: %v", s.err)
	}
	s.c.Input(t0, framed(readSeg(wire.Header{Last: true, QN: 1, MSN: 3}, then), false))
	if e, _ := s.err.(*core.Error); e == nil || termOf(e) != "0207" {
		t.Errorf("another Read where none is served: %v: want 0207", s.err)
	}
}
