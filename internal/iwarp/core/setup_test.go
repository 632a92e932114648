package core_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// TestNotMPA: both sides report bytes of another protocol as such, whole or byte by byte.
func TestNotMPA(t *testing.T) {
	for _, tt := range []struct {
		name, input, first string
		step               func() int
	}{
		// cut at an MPA frame's length
		{"whole", "HTTP/1.1 400 Bad Request\r\n", `"HTTP/1.1 400 Bad Req"`, whole},
		{"bytes", "HTTP/1.1 400 Bad Request\r\n", `"H"`, func() int { return 1 }},
		{"late", "MPA ID Rex\x00\xff", `"MPA ID Rex\x00\xff"`, whole},
	} {
		for _, initiator := range []bool{true, false} {
			s := newSide(t, tt.name, core.Config{Initiator: initiator})
			s.c.BeginSetup(t0)
			s.take(1 << 30)
			s.input([]byte(tt.input), tt.step)
			if s.err == nil {
				t.Fatalf("%s, initiator %t: nothing failed", tt.name, initiator)
			}
			for _, want := range []string{"the peer does not speak iWARP (MPA)", "its first bytes are " + tt.first, "MPA key byte 0x"} {
				if !strings.Contains(s.err.Error(), want) {
					t.Errorf("%s, initiator %t: %v: does not say %q", tt.name, initiator, s.err, want)
				}
			}
		}
	}
	s := newSide(t, "revision 3", core.Config{Initiator: true})
	s.c.BeginSetup(t0)
	s.c.Input(t0, frame(wire.Frame{Reply: true, Revision: 3}))
	if s.err == nil || strings.Contains(s.err.Error(), "does not speak") {
		t.Errorf("MPA of another revision: %v", s.err)
	}
}

// TestRTRChoice: a responder picks exactly one ready-to-receive message.
func TestRTRChoice(t *testing.T) {
	for _, tt := range []struct{ offer, want wire.Control }{
		{wire.Control{}, wire.Control{}},
		// without A they mean nothing
		{wire.Control{RTRWrite: true, RTRRead: true}, wire.Control{}},
		{wire.Control{PeerToPeer: true, RTRWrite: true, RTRRead: true}, wire.Control{PeerToPeer: true, RTRWrite: true}},
		{wire.Control{PeerToPeer: true, RTRRead: true}, wire.Control{PeerToPeer: true, RTRRead: true}},
		// as siw
		{wire.Control{PeerToPeer: true, RTREmpty: true}, wire.Control{PeerToPeer: true, RTRWrite: true}},
	} {
		s := newSide(t, "responder", core.Config{})
		s.c.BeginSetup(t0)
		tt.offer.IRD, tt.want.IRD, tt.want.ORD = 2, 6, 2
		s.c.Input(t0, frame(wire.Frame{Revision: 2, Flags: wire.FlagEnhanced, Control: tt.offer}))
		if err := s.c.Accept(t0, nil, 6, 8); err != nil {
			t.Fatal(err)
		}
		f, n, err := wire.ConsumeFrame(s.take(1 << 30))
		if err != nil || n != len(s.out) || f.Control != tt.want {
			t.Errorf("offer %+v: %+v, %v: want %+v", tt.offer, f.Control, err, tt.want)
		}
		if established := s.est == 1; established == tt.want.PeerToPeer {
			t.Errorf("offer %+v: established %v with the Reply", tt.offer, established)
		}
	}
}

// TestPeerToPeerEstablished: any first FPDU makes the connection, and before its message is
// delivered.
func TestPeerToPeerEstablished(t *testing.T) {
	rtr := map[string][]byte{
		"Write": fpdu(wire.Header{Tagged: true, Last: true, STag: 1}),
		"Read":  fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 1}, make([]byte, wire.ReadRequestLen)...),
		"Send":  send(1, "x"),
	}
	for name, first := range rtr {
		s := newSide(t, name, core.Config{})
		s.postRecv(1, 1)
		s.onComplete = func(completion) {
			if s.est != 1 {
				t.Errorf("%s: a message before Established", name)
			}
		}
		s.c.BeginSetup(t0)
		s.c.Input(t0, frame(wire.Frame{Revision: 2, Flags: wire.FlagEnhanced, Control: wire.Control{PeerToPeer: true, RTRWrite: true}}))
		if err := s.c.Accept(t0, nil, 1, 1); err != nil {
			t.Fatal(err)
		}
		s.take(1 << 30)
		s.postSend(5, "early", 0)
		s.quiet("a responder says nothing before the first FPDU")
		s.input(first[:len(first)-1], whole)
		if s.est != 0 {
			t.Errorf("%s: established by part of an FPDU", name)
		}
		s.input(first[len(first)-1:], whole)
		if s.est != 1 || !s.c.Pending() {
			t.Errorf("%s: established %d, output %v", name, s.est, s.c.Pending())
		}
	}
}

// TestBytesBeforeReply: an initiator that sends before it has the Reply is disconnected, whenever
// its bytes arrive.
func TestBytesBeforeReply(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		s := newSide(t, "responder", core.Config{})
		s.c.BeginSetup(t0)
		s.c.Input(t0, frame(wire.Frame{Revision: 1}))
		if accepted {
			if err := s.c.Accept(t0, nil, 0, 0); err != nil {
				t.Fatal(err)
			}
			s.write(10)
		}
		s.c.Input(t0, []byte{0})
		if _, now := s.c.WantClose(); !now || s.closed != 1 || s.est != 0 {
			t.Errorf("accepted %v: closed %d: %v", accepted, s.closed, s.err)
		}
		wantErrno(t, "bytes before the Reply", s.err, unix.EPROTO)
	}
}

// TestHoldOff: a responder sends nothing until the initiator has sent something, or until 100 ms
// after its Reply.
func TestHoldOff(t *testing.T) {
	newResponder := func() *side {
		s := newSide(t, "responder", core.Config{})
		s.onEstablished = func() { s.postSend(1, "hello", 0) }
		s.c.BeginSetup(t0)
		s.c.Input(t0, frame(wire.Frame{Revision: 1}))
		if err := s.c.Accept(t0, nil, 0, 0); err != nil {
			t.Fatal(err)
		}
		s.at(time.Second) // a slow socket: the pause begins when the Reply is out
		s.write(5)
		if s.est != 0 {
			t.Error("established by half a Reply")
		}
		s.take(1 << 30)
		if s.est != 1 {
			t.Error("not established by the Reply")
		}
		s.out = nil
		s.quiet("hold-off")
		return s
	}
	s := newResponder()
	s.c.Timeout(t0.Add(time.Second + 99*time.Millisecond))
	s.quiet("too early")
	s.fire("the end of the hold-off", time.Second+100*time.Millisecond)
	if got := s.take(1 << 30); !bytes.Equal(got, send(1, "hello")) {
		t.Errorf("after the hold-off: %x", got)
	}
	s = newResponder()
	s.c.Input(s.now, fpdu(wire.Header{Tagged: true, Last: true, STag: 1}))
	if got := s.take(1 << 30); !bytes.Equal(got, send(1, "hello")) {
		t.Errorf("after the first FPDU: %x", got)
	}
	if _, ok := s.c.Deadline(); ok {
		t.Error("a deadline is left")
	}
}

// TestHoldOffLostReply: the pause begins again when the peer has received the Reply, however late
// that is.
func TestHoldOffLostReply(t *testing.T) {
	s := newSide(t, "responder", core.Config{})
	s.c.BeginSetup(t0)
	s.c.Input(t0, frame(wire.Frame{Revision: 1}))
	if err := s.c.Accept(t0, nil, 0, 0); err != nil {
		t.Fatal(err)
	}
	s.take(1 << 30)
	s.postSend(1, "hello", 0)
	s.out = nil
	at := 100 * time.Millisecond
	for ; at < time.Second; at += 100 * time.Millisecond {
		if s.at(at); !s.c.HoldOver(s.now) {
			t.Fatalf("the pause is not over after %v", at)
		}
		s.c.HoldOn(s.now)
		s.c.Timeout(s.now)
		s.quiet("the Reply is not acknowledged")
	}
	s.fire("the Reply may have come just now", at)
	s.quiet("the Reply may have come just now")
	s.fire("the end of the hold-off", at+100*time.Millisecond)
	if got := s.take(1 << 30); !bytes.Equal(got, send(1, "hello")) {
		t.Errorf("after the hold-off: %x", got)
	}
}

// TestKick: an initiator that receives nothing sends an empty Write 2, 20 and 200 ms after its
// first FPDU. Once it receives something it stops.
func TestKick(t *testing.T) {
	kick := fpdu(wire.Header{Tagged: true, Last: true, STag: 1})
	a, _ := connect(t, core.Config{}, core.Config{})
	if at, ok := a.c.Deadline(); ok {
		t.Errorf("a deadline before the first FPDU: %v", at)
	}
	a.at(time.Second)
	a.postSend(1, "first", 0)
	a.take(1 << 30)
	for _, after := range []time.Duration{2, 20, 200} {
		a.fire("kick", time.Second+after*time.Millisecond)
		a.out = nil
		if got := a.take(1 << 30); !bytes.Equal(got, kick) {
			t.Errorf("after %d ms: %x, want an empty Write", after, got)
		}
	}
	if at, ok := a.c.Deadline(); ok {
		t.Errorf("a fourth kick at %v", at)
	}

	a, b := connect(t, core.Config{PeerToPeer: true}, core.Config{})
	a.fire("the RTR may be lost on siw as well", 2*time.Millisecond)
	b.postSend(1, "", 0)
	a.postRecv(1, 0)
	b.take(1 << 30)
	a.c.Input(a.now, b.fresh())
	a.quiet("the kick that was due is not needed any more")
	if _, ok := a.c.Deadline(); ok {
		t.Error("still kicking after hearing the peer")
	}
	a.postSend(2, "x", 0)
	a.take(1 << 30)
	if _, ok := a.c.Deadline(); ok {
		t.Error("kicks begin again")
	}
}

// TestNoKickAfterHearing: a peer that has sent something is established and needs no kick.
func TestNoKickAfterHearing(t *testing.T) {
	a, _ := connect(t, core.Config{}, core.Config{})
	a.postRecv(1, 1)
	a.c.Input(t0, send(1, "x"))
	a.postSend(1, "x", 0)
	a.take(1 << 30)
	if at, ok := a.c.Deadline(); ok {
		t.Errorf("a kick at %v", at)
	}
}

// TestKickWaits: a kick never comes between the segments of a message.
func TestKickWaits(t *testing.T) {
	a, b := connect(t, core.Config{MaxSegment: 400}, core.Config{})
	b.postRecv(1, 1<<20)
	a.postSend(1, string(pattern(1<<20)), 0)
	for n := 0; a.c.Pending(); n++ {
		a.write(3000)
		a.at(time.Duration(n) * time.Millisecond)
		a.c.Timeout(a.now)
		b.c.Input(t0, a.fresh())
	}
	b.wantDone("one message", "r1:success/1048576")
	if b.closed != 0 {
		t.Error(b.err)
	}
}

// TestSetupTimeouts, in the order in which they can happen.
func TestSetupTimeouts(t *testing.T) {
	s := newSide(t, "initiator", core.Config{Initiator: true})
	s.c.BeginSetup(t0)
	s.take(1 << 30)
	s.c.Timeout(t0.Add(9 * time.Second))
	s.fire("no Reply", 10*time.Second)
	wantErrno(t, "no Reply", s.rejected, unix.ETIMEDOUT)
	wantErrno(t, "no Reply", s.err, unix.ETIMEDOUT)

	s = newSide(t, "responder", core.Config{})
	s.c.BeginSetup(t0)
	s.c.Input(t0, []byte("MPA ID Re"))
	s.fire("no Request", 5*time.Second)
	wantErrno(t, "no Request", s.err, unix.ETIMEDOUT)

	s = newSide(t, "responder", core.Config{SetupTimeout: 7 * time.Second})
	s.c.BeginSetup(t0)
	s.c.Input(t0, frame(wire.Frame{Revision: 2, Flags: wire.FlagEnhanced, Control: wire.Control{PeerToPeer: true, RTRWrite: true}}))
	if at, ok := s.c.Deadline(); ok {
		t.Errorf("the owner may think as long as it likes, not until %v", at)
	}
	s.at(time.Minute)
	if err := s.c.Accept(s.now, nil, 1, 1); err != nil {
		t.Fatal(err)
	}
	s.take(1 << 30)
	s.fire("no first FPDU of a peer-to-peer initiator", time.Minute+7*time.Second)
	wantErrno(t, "no first FPDU", s.err, unix.ETIMEDOUT)
	if _, now := s.c.WantClose(); !now || s.est != 0 || s.closed != 1 {
		t.Errorf("established %d, closed %d", s.est, s.closed)
	}
}

// TestEndInSetup: FIN or RST before set-up is complete.
func TestEndInSetup(t *testing.T) {
	for _, err := range []error{nil, unix.ECONNRESET, unix.EPIPE} {
		s := newSide(t, "initiator", core.Config{Initiator: true})
		s.c.BeginSetup(t0)
		s.take(1 << 30)
		s.c.InputEnd(t0, err)
		wantErrno(t, "no Reply", s.rejected, unix.ECONNRESET)
		wantErrno(t, "no Reply: try revision 1", s.rejected, core.ErrNoReply)

		s = newSide(t, "initiator", core.Config{Initiator: true})
		s.c.BeginSetup(t0)
		s.c.Input(t0, []byte("MPA"))
		s.c.InputEnd(t0, err)
		wantErrno(t, "part of a Reply", s.rejected, unix.ECONNRESET)
		if errors.Is(s.rejected, core.ErrNoReply) || s.closed != 1 {
			t.Errorf("part of a Reply: %v, closed %d", s.rejected, s.closed)
		}
	}
	s := newSide(t, "responder", core.Config{})
	s.c.BeginSetup(t0)
	s.c.InputEnd(t0, nil)
	wantErrno(t, "no Request", s.err, unix.ECONNRESET)

	s = newSide(t, "responder", core.Config{})
	s.c.BeginSetup(t0)
	s.c.Input(t0, []byte("MPA"))
	s.c.InputEnd(t0, nil)
	wantErrno(t, "part of a Request", s.err, unix.ECONNRESET)
	if !strings.Contains(s.err.Error(), "3 bytes of a Request") {
		t.Errorf("part of a Request: %v, which does not contain its length", s.err)
	}

	s = newSide(t, "responder", core.Config{})
	s.c.BeginSetup(t0)
	s.c.Input(t0, frame(wire.Frame{Revision: 1}))
	s.c.InputEnd(t0, nil)
	wantErrno(t, "the initiator gave up", s.err, unix.ECONNRESET)
	wantErrno(t, "Accept", s.c.Accept(t0, nil, 0, 0), unix.ECONNRESET)
	wantErrno(t, "Reject", s.c.Reject(t0, nil), unix.ECONNRESET)
	s.quiet("nobody to answer")
}
