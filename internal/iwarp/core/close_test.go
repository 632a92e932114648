package core_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

func (s *side) wantClose(why string, fin, now bool) {
	s.t.Helper()
	if f, n := s.c.WantClose(); f != fin || n != now {
		s.t.Errorf("%s: %s: FIN %v, close %v: want %v, %v", s.name, why, f, n, fin, now)
	}
}

// TestDisconnect: a send that has begun is finished. The sends behind it are flushed in order. The
// peer's data still arrives.
func TestDisconnect(t *testing.T) {
	a, b := connect(t, core.Config{MaxSegment: 1000}, core.Config{})
	for i := range 4 {
		b.postRecv(uint64(i), 3000)
		a.postSend(uint64(i), string(pattern(3000)), 0)
	}
	a.postRecv(9, 10)
	fpdus := 3*(2+18+4) + 3000
	a.out, b.out = nil, nil
	a.write(fpdus + 1) // one byte into the second message
	a.c.Disconnect(a.now)
	a.wantDone("the second has begun", "s0:success/3000")
	a.wantClose("output left", false, false)
	wantErrno(t, "send after Disconnect", a.c.PostSend(&verbs.SendWR{}), unix.EINVAL)
	if got := len(a.take(700)); got != fpdus-1 {
		t.Errorf("%d more bytes written, want the %d of the second message", got, fpdus-1)
	}
	a.wantDone("the rest", "s1:success/3000 s2:work request flushed/0 s3:work request flushed/0")
	a.wantClose("all out", true, false)
	b.c.Input(t0, a.fresh())
	b.wantDone("both messages", "r0:success/3000 r1:success/3000")
	b.postSend(5, "crossing", 0)
	b.take(1 << 30)
	a.c.Input(t0, b.fresh())
	a.wantDone("sent before the peer saw our FIN", "r9:success/8")
	b.c.InputEnd(t0, nil)
	b.wantDone("the peer", "s5:success/8 r2:work request flushed/0 r3:work request flushed/0")
	b.wantClose("FIN from the peer", false, true)
	a.c.InputEnd(t0, nil)
	a.wantClose("both FINs", true, true)
	for _, s := range []*side{a, b} {
		if s.closed != 1 || s.err != nil {
			t.Errorf("%s: closed %d, %v", s.name, s.closed, s.err)
		}
	}
}

// TestDisconnectBetween: no send has begun, so nothing more is sent, even if FPDUs were already
// made.
func TestDisconnectBetween(t *testing.T) {
	a, _ := connect(t, core.Config{}, core.Config{})
	a.out = nil
	a.postSend(1, string(pattern(500)), 0)
	a.postSend(2, "2", 0)
	a.c.Gather(nil) // a write that took nothing
	a.c.Disconnect(t0)
	a.wantDone("flushed", "s1:work request flushed/0 s2:work request flushed/0")
	a.quiet("nothing has begun")
	a.wantClose("at once", true, false)
	a.fire("no FIN from the peer", 5*time.Second)
	wantErrno(t, "no FIN from the peer", a.err, unix.ETIMEDOUT)
	a.wantClose("no FIN from the peer", true, true)
}

// TestDisconnectInKick: a partly sent FPDU that is not the application's is finished too.
func TestDisconnectInKick(t *testing.T) {
	a, _ := connect(t, core.Config{PeerToPeer: true}, core.Config{})
	a.postSend(1, "x", 0)
	a.take(1 << 30)
	a.fire("kick", 2*time.Millisecond)
	a.postSend(2, "y", 0)
	a.out = nil
	a.write(3)
	a.c.Disconnect(a.now)
	a.take(1 << 30)
	if want := fpdu(wire.Header{Tagged: true, Last: true, STag: 1}); !bytes.Equal(a.out, want) {
		t.Errorf("%x: want the kick and no more", a.out)
	}
	a.wantDone("the send behind", "s1:success/1 s2:work request flushed/0")
	a.wantClose("all out", true, false)
}

// TestDisconnectDespiteReads: a peer that always has a Read outstanding gets no answers to those
// that come after Disconnect. So it cannot delay the FIN.
func TestDisconnectDespiteReads(t *testing.T) {
	r := connectMemory(t, 100, core.Config{}, core.Config{})
	b, msn := r.b, uint32(0)
	ask := func() {
		msn++
		q := wire.ReadRequest{Size: 100, SourceSTag: r.far.RKey, SourceTO: r.far.Addr}
		b.c.Input(b.now, framed(readSeg(wire.Header{Last: true, QN: 1, MSN: msn}, q), false))
	}
	ask() // a responder sends nothing before the initiator has
	b.take(1 << 30)
	b.out = nil
	b.postSend(1, string(pattern(1000)), 0)
	b.write(10)
	b.c.Disconnect(t0)
	for range 100 {
		ask()
		b.write(50)
	}
	b.wantDone("what had begun", "s1:success/1000")
	b.wantClose("the peer goes on asking", true, false)
	for _, op := range opcodes(t, b.out) {
		if op == wire.OpReadResponse {
			t.Error("a Read that came after Disconnect was answered")
		}
	}
	b.fire("no FIN from the peer", 5*time.Second)
	wantErrno(t, "no FIN from the peer", b.err, unix.ETIMEDOUT)
}

// TestAbort in every state.
func TestAbort(t *testing.T) {
	responder := func(input ...[]byte) *side {
		s := newSide(t, "responder", core.Config{})
		s.postRecv(1, 1)
		s.c.BeginSetup(t0)
		for _, b := range input {
			s.c.Input(t0, b)
		}
		return s
	}
	request := frame(wire.Frame{Revision: 1})
	check := func(why string, s *side, now bool) {
		t.Helper()
		wantErrno(t, why, s.err, unix.ECONNABORTED)
		s.wantDone(why, "r1:work request flushed/0")
		if _, n := s.c.WantClose(); n != now || s.closed != 1 {
			t.Errorf("%s: close now %v, want %v; closed %d", why, n, now, s.closed)
		}
		s.c.Abort(t0)
		s.c.Disconnect(t0)
		if _, n := s.c.WantClose(); !n || s.closed != 1 || s.c.Pending() {
			t.Errorf("%s: a second Abort: close now %v, closed %d", why, n, s.closed)
		}
	}
	idle := newSide(t, "idle", core.Config{})
	idle.postRecv(1, 1)
	idle.c.Abort(t0)
	check("idle", idle, true)
	s := responder()
	s.c.Abort(t0)
	check("waiting for a Request", s, true)
	s = responder(request)
	s.c.Abort(t0)
	if f, _, err := wire.ConsumeFrame(s.take(1 << 30)); err != nil || f.Flags != wire.FlagReject {
		t.Errorf("an unanswered Request: %+v, %v: want a reject", f, err)
	}
	check("an unanswered Request", s, false)
	s = responder(request)
	if err := s.c.Accept(t0, nil, 0, 0); err != nil {
		t.Fatal(err)
	}
	s.c.Abort(t0)
	check("accepting", s, true)
	s, _ = connect(t, core.Config{}, core.Config{})
	s.postRecv(1, 1)
	s.c.Abort(t0)
	check("open", s, true)
}

// TestAbortInitiator: siw's listener dies if a connection is reset before its Reply. So the socket
// stays open until the Reply has come, or for 100 ms.
func TestAbortInitiator(t *testing.T) {
	abort := func() *side {
		s := newSide(t, "initiator", core.Config{Initiator: true})
		s.c.BeginSetup(t0)
		s.c.Abort(t0)
		wantErrno(t, "abort", s.err, unix.ECONNABORTED)
		if got := s.take(1 << 30); len(got) != 24 {
			t.Errorf("the Request is not sent any more: %d bytes", len(got))
		}
		s.wantClose("waiting for the Reply", false, false)
		return s
	}
	s := abort()
	s.fire("no Reply", 100*time.Millisecond)
	s.wantClose("no Reply", false, true)
	s = abort()
	s.c.Input(t0, frame(wire.Frame{Reply: true, Revision: 2, Flags: wire.FlagEnhanced}))
	s.wantClose("the Reply", false, true)
	s = abort()
	s.c.InputEnd(t0, nil)
	s.wantClose("FIN", false, true)
	if s.closed != 1 || s.rejected != nil || s.est != 0 {
		t.Errorf("closed %d, %v, established %d", s.closed, s.rejected, s.est)
	}
}

// TestPeerEnds: FIN and RST on an established connection.
func TestPeerEnds(t *testing.T) {
	tests := []struct {
		name  string
		input []byte
		err   error
		want  unix.Errno // 0: orderly
	}{
		{"FIN", nil, nil, 0},
		{"FIN behind a message", send(1, "x"), nil, 0},
		{"FIN in a header", send(1, "x")[:5], nil, unix.ECONNRESET},
		{"FIN in a trailer", send(1, "x")[:27], nil, unix.ECONNRESET},
		{"FIN between segments", fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1}, 1), nil, unix.ECONNRESET},
		{"RST", nil, unix.ECONNRESET, unix.ECONNRESET},
		{"TCP gives up", nil, unix.ETIMEDOUT, unix.ETIMEDOUT},
		{"an error without errno", nil, bytes.ErrTooLarge, unix.EIO},
	}
	for _, tt := range tests {
		_, b := connect(t, core.Config{}, core.Config{})
		b.postRecv(1, 10)
		b.postSend(2, "dropped", 0)
		b.c.Input(t0, tt.input)
		b.c.InputEnd(t0, tt.err)
		b.wantClose(tt.name, false, true)
		if !strings.HasSuffix(b.statuses(), "s2:work request flushed/0") || len(b.done) != 2 || b.closed != 1 {
			t.Errorf("%s: %s, closed %d", tt.name, b.statuses(), b.closed)
		}
		if tt.want == 0 && b.err != nil {
			t.Errorf("%s: %v", tt.name, b.err)
		} else if tt.want != 0 {
			wantErrno(t, tt.name, b.err, tt.want)
		}
		b.c.Input(t0, send(1, "x"))
		b.c.InputEnd(t0, nil)
		b.quiet("over")
	}
}

// TestNoTerminateBehindFIN: once our FIN may have been sent, no Terminate can be sent.
func TestNoTerminateBehindFIN(t *testing.T) {
	a, _ := connect(t, core.Config{}, core.Config{})
	a.c.Disconnect(t0)
	a.wantClose("nothing to send", true, false)
	a.c.Input(t0, send(1, "no receive for this"))
	if e, _ := a.err.(*core.Error); e == nil || e.Sent || e.Code != 2 {
		t.Errorf("%v: want DDP 2/02, not sent", a.err)
	}
	a.quiet("behind our FIN")
	read := fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 1}, make([]byte, wire.ReadRequestLen)...)
	a, _ = connect(t, core.Config{}, core.Config{})
	a.c.Disconnect(t0)
	a.c.Input(t0, read)
	a.quiet("a Read behind our FIN is not answered")
	a.wantClose("still finishing", true, false)
}

// TestReadRTR: the initiator's empty Read is answered once, and once only.
func TestReadRTR(t *testing.T) {
	s := newSide(t, "initiator", core.Config{Initiator: true, PeerToPeer: true, IRD: 1, ORD: 1})
	s.c.BeginSetup(t0)
	s.take(1 << 30)
	s.out = nil
	word := wire.Control{PeerToPeer: true, RTRRead: true, IRD: 1, ORD: 1}
	answer := fpdu(wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse})
	// an answer in the same bytes as the Reply: unusual, but the Reply is complete
	s.c.Input(t0, append(frame(wire.Frame{Reply: true, Revision: 2, Flags: wire.FlagEnhanced, Control: word}), answer...))
	s.take(1 << 30)
	if want := fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 1},
		wire.AppendReadRequest(nil, &wire.ReadRequest{SourceSTag: 1})...); !bytes.Equal(s.out, want) {
		t.Errorf("RTR %x, want %x", s.out, want)
	}
	if s.closed != 0 || len(s.done) != 0 {
		t.Errorf("closed %d (%v), completions %s", s.closed, s.err, s.statuses())
	}
	for payload, bad := range map[string]wire.Header{
		"":  {Tagged: true, Last: true, Opcode: wire.OpReadResponse, STag: 3},
		"x": {Tagged: true, Last: true, Opcode: wire.OpReadResponse},
	} {
		s := newSide(t, "initiator", core.Config{Initiator: true, PeerToPeer: true, IRD: 1, ORD: 1})
		s.c.BeginSetup(t0)
		s.take(1 << 30)
		s.c.Input(t0, frame(wire.Frame{Reply: true, Revision: 2, Flags: wire.FlagEnhanced, Control: word}))
		s.c.Input(t0, fpdu(bad, []byte(payload)...))
		if e, _ := s.err.(*core.Error); e == nil || e.Layer != wire.LayerDDP || e.Type != wire.DDPTagged {
			t.Errorf("%+v: %v", bad, s.err)
		}
	}
	s.c.Input(t0, answer)
	if e, _ := s.err.(*core.Error); e == nil || e.Type != wire.TypeCatastrophic {
		t.Errorf("a second answer: %v", s.err)
	}
}

// TestUpcallsMayAct makes every call that an upcall may make.
func TestUpcallsMayAct(t *testing.T) {
	for name, act := range map[string]func(s *side){
		"Abort":      func(s *side) { s.c.Abort(t0) },
		"Disconnect": func(s *side) { s.c.Disconnect(t0) },
	} {
		// in a receive's completion, with more input behind it
		a, b := connect(t, core.Config{}, core.Config{})
		for i := range 3 {
			b.postRecv(uint64(i), 9)
			a.postSend(uint64(i), "message", 0)
		}
		b.onComplete = func(completion) { act(b) }
		move(a, b, 1<<30, whole)
		if len(b.done) != 3 || b.closed != 1 || a.closed != 1 {
			t.Errorf("%s in a receive: %s, closed %d and %d", name, b.statuses(), b.closed, a.closed)
		}
		// in a send's completion, with more behind it
		a, b = connect(t, core.Config{}, core.Config{})
		for i := range 3 {
			b.postRecv(uint64(i), 9)
			a.postSend(uint64(i), "message", 0)
		}
		a.onComplete = func(completion) { act(a) }
		move(a, b, 30, whole)
		if len(a.done) != 3 || a.closed != 1 || b.closed != 1 {
			t.Errorf("%s in a send: %s, closed %d and %d", name, a.statuses(), a.closed, b.closed)
		}
		// in Established, at both sides
		for _, first := range []bool{true, false} {
			a, b = newSide(t, "initiator", core.Config{Initiator: true}), newSide(t, "responder", core.Config{})
			b.onRequest = func(core.Request) {
				if err := b.c.Accept(t0, nil, 0, 0); err != nil {
					t.Error(err)
				}
			}
			if first {
				a.onEstablished = func() { act(a) }
			} else {
				b.onEstablished = func() { act(b) }
			}
			a.c.BeginSetup(t0)
			b.c.BeginSetup(t0)
			move(a, b, 1<<30, whole)
			if a.closed != 1 || b.closed != 1 {
				t.Errorf("%s in Established: closed %d and %d", name, a.closed, b.closed)
			}
		}
		// in Request
		s := newSide(t, "responder", core.Config{})
		s.onRequest = func(core.Request) { act(s) }
		s.c.BeginSetup(t0)
		s.c.Input(t0, frame(wire.Frame{Revision: 1}))
		if s.closed != 1 {
			t.Errorf("%s in Request: closed %d", name, s.closed)
		}
	}
}
