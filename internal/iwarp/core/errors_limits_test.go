package core_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// TestLimits checks the Read limits that both sides have after the negotiation of RFC 6581 section
// 9.1. The initiator's come first. Only other implementations send "not negotiated" (0x3fff), so
// such a Request is made by hand.
func TestLimits(t *testing.T) {
	tests := []struct {
		name                     string
		rev                      byte
		ird, ord                 uint16 // the Request's
		acceptIRD, acceptORD     uint16
		replyIRD, replyORD       uint16
		responderIRD, respondORD uint16 // what its owner hears
	}{
		{"both get what they want", 2, 4, 8, 8, 4, 8, 4, 8, 4},
		{"the responder asks for more than the initiator serves", 2, 4, 8, 8, 100, 8, 4, 8, 4},
		{"the initiator serves none", 2, 0, 8, 8, 100, 8, 0, 8, 0},
		{"the responder serves fewer than the initiator asks for", 2, 4, 8, 3, 4, 3, 4, 3, 4},
		{"the responder serves more", 2, 4, 8, 16, 1, 16, 1, 16, 1},
		{"nobody reads", 2, 0, 0, 0, 0, 0, 0, 0, 0},
		{"the most", 2, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe},
		{"IRD not negotiated", 2, 0x3fff, 8, 8, 100, 8, 100, 8, 100},
		{"ORD not negotiated", 2, 4, 0x3fff, 8, 100, 8, 4, 8, 4},
		{"neither negotiated", 2, 0x3fff, 0x3fff, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe, 0x3ffe},
		{"revision 1 has no numbers", 1, 0, 0, 8, 100, 0, 0, 128, 100},
		{"revision 1 has no numbers, and no Reads were wanted", 1, 0, 0, 0, 0, 0, 0, 128, 0},
		{"revision 1 has no numbers, and more were wanted", 1, 0, 0, 200, 1, 0, 0, 200, 1},
	}
	for _, tt := range tests {
		s := newSide(t, tt.name, core.Config{})
		s.c.BeginSetup(t0)
		in := rawFrame(req, 0, 1, 0)
		if tt.rev == 2 {
			in = rawFrame(req, 0x10, 2, 4, word(tt.ird, tt.ord)...)
		}
		s.c.Input(t0, in)
		if len(s.requests) != 1 || s.requests[0].IRD != tt.ird || s.requests[0].ORD != tt.ord {
			t.Fatalf("%s: Request %+v: want the initiator's own numbers", tt.name, s.requests)
		}
		if err := s.c.Accept(t0, nil, tt.acceptIRD, tt.acceptORD); err != nil {
			t.Fatal(err)
		}
		f, _, err := wire.ConsumeFrame(s.take(1 << 30))
		if want := (wire.Control{IRD: tt.replyIRD, ORD: tt.replyORD}); err != nil || f.Control != want {
			t.Errorf("%s: Reply %+v, %v, want %+v", tt.name, f.Control, err, want)
		}
		if s.ird != tt.responderIRD || s.ord != tt.respondORD {
			t.Errorf("%s: established with IRD %d, ORD %d: want %d, %d", tt.name, s.ird, s.ord, tt.responderIRD, tt.respondORD)
		}
	}
}

// TestLimitsAgree: whatever limits two Conns want, neither may have more Reads outstanding than the
// other serves, nor more than it wanted. That many Reads work.
func TestLimitsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(rapid.Uint16Range(0, 9), rapid.Uint16Range(0, core.MaxIRD))
		cfg := core.Config{
			Initiator: true, Revision: 2, IRD: number.Draw(rt, "IRD"), ORD: number.Draw(rt, "ORD"),
			PeerToPeer: rapid.Bool().Draw(rt, "peer-to-peer"),
		}
		ird, ord := number.Draw(rt, "accept IRD"), number.Draw(rt, "accept ORD")
		a, b := newSide(rt, "initiator", cfg), newSide(rt, "responder", core.Config{})
		b.onRequest = func(core.Request) {
			if err := b.c.Accept(t0, nil, ird, ord); err != nil {
				rt.Fatal(err)
			}
		}
		a.c.BeginSetup(t0)
		b.c.BeginSetup(t0)
		move(a, b, 1<<30, whole)
		if a.est != 1 || b.est != 1 {
			rt.Fatalf("established %d and %d: %v, %v", a.est, b.est, a.err, b.err)
		}
		if a.ord > min(cfg.ORD, b.ird) || b.ord > min(ord, a.ird) || a.ird != cfg.IRD || b.ird != ird {
			rt.Errorf("initiator: IRD %d, ORD %d; responder: IRD %d, ORD %d: more is asked for than served", a.ird, a.ord, b.ird, b.ord)
		}
		b.at(100 * time.Millisecond)
		b.c.Timeout(b.now) // it may speak
		for _, s := range []*side{a, b} {
			n := min(int(s.ord), 20)
			for id := range n {
				postReadInto(s, uint64(id), region(0), 0, 0)
			}
			move(a, b, 1<<30, whole)
			if len(s.done) != n || a.closed+b.closed > 0 {
				rt.Errorf("%s: %d of %d Reads done: %v, %v", s.name, len(s.done), n, a.err, b.err)
			}
		}
	})
}

// TestLimitOfParameters: parameters that would not fit, or that would harm a peer, fail with EINVAL
// before anything is sent. These are numbers of more than 14 bits, 0x3fff, private data above 248
// bytes, and revisions above 2.
func TestLimitOfParameters(t *testing.T) {
	var c core.Conn
	for _, cfg := range []core.Config{
		{Revision: 3},
		{IRD: 0x3fff},
		{ORD: 0x3fff},
		{IRD: 0xffff},
		{ORD: 0x4000},
		{PrivateData: make([]byte, 249)},
		{PrivateData: make([]byte, 600)},
	} {
		cfg.Initiator = true
		wantErrno(t, fmt.Sprintf("Init, %d bytes, %d, %d", len(cfg.PrivateData), cfg.IRD, cfg.ORD), c.Init(cfg, nil), unix.EINVAL)
	}
	s := newSide(t, "responder", core.Config{})
	wantErrno(t, "Accept before BeginSetup", s.c.Accept(t0, nil, 0, 0), unix.EINVAL)
	s.c.BeginSetup(t0)
	wantErrno(t, "Accept before the Request", s.c.Accept(t0, nil, 0, 0), unix.EINVAL)
	wantErrno(t, "Reject before the Request", s.c.Reject(t0, nil), unix.EINVAL)
	s.c.Input(t0, rawFrame(req, 0x10, 2, 4, word(1, 1)...))
	for _, n := range []int{249, 252, 256, 508, 512, 70000} {
		wantErrno(t, fmt.Sprintf("Accept with %d bytes", n), s.c.Accept(t0, make([]byte, n), 1, 1), unix.EINVAL)
		wantErrno(t, fmt.Sprintf("Reject with %d bytes", n), s.c.Reject(t0, make([]byte, n)), unix.EINVAL)
	}
	for _, n := range []uint16{0x3fff, 0x4000, 0xffff} {
		wantErrno(t, fmt.Sprintf("Accept with an IRD of %d", n), s.c.Accept(t0, nil, n, 1), unix.EINVAL)
		wantErrno(t, fmt.Sprintf("Accept with an ORD of %d", n), s.c.Accept(t0, nil, 1, n), unix.EINVAL)
	}
	s.quiet("nothing was answered")
	if err := s.c.Accept(t0, make([]byte, core.MaxPrivateData), core.MaxIRD, core.MaxIRD); err != nil {
		t.Errorf("the most that is allowed: %v", err)
	}
	wantErrno(t, "a second Accept", s.c.Accept(t0, nil, 1, 1), unix.EINVAL)
	wantErrno(t, "Reject behind Accept", s.c.Reject(t0, nil), unix.EINVAL)
}
