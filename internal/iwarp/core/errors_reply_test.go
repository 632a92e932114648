package core_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
)

// replyRow is one kind of Reply: how the initiator interprets it, its answer, and the resulting
// report to the responder.
type replyRow struct {
	name    string
	cfg     core.Config
	reply   []byte
	errno   unix.Errno // 0: established
	term    string     // the Terminate of layer 2 that goes back; empty: none
	private string
	reject  bool // the peer's owner rejected the connection
	ird     uint16
	ord     uint16
	crc     bool
	first   string // sent immediately by a peer-to-peer initiator: "Write" or "Read Request"
}

// TestReplyErrors: every kind of Reply.
func TestReplyErrors(t *testing.T) {
	const codes, limits, peer2peer = "RFC 6581 section 8 ", "RFC 6581 section 9.1 ", "RFC 6581 section 9.2 "
	rev1 := core.Config{Revision: 1, IRD: 4, ORD: 8}
	def := core.Config{IRD: 4, ORD: 8}
	p2p := core.Config{PeerToPeer: true, IRD: 4, ORD: 8}
	crc := core.Config{CRC: true, IRD: 4, ORD: 8}
	many := make([]byte, 513)
	good := func(flags byte, ird, ord uint16) []byte { return rawFrame(rep, flags, 2, 4, word(ird, ord)...) }
	const refused, reset, inval = unix.ECONNREFUSED, unix.ECONNRESET, unix.EINVAL
	rows := []replyRow{
		{name: enhanced + "accepted", cfg: def, reply: rawFrame(rep, 0x10, 2, 6, append(word(6, 4), 'p', 'd')...), private: "pd", ird: 4, ord: 6},
		{name: mpaFrame + "accepted in revision 1", cfg: rev1, reply: rawFrame(rep, 0, 1, 2, 'p', 'd'), private: "pd", ird: 128, ord: 8},
		{name: mpaFrame + "revision 0 to revision 1", cfg: rev1, reply: rawFrame(rep, 0, 0, 0), ird: 128, ord: 8},
		{
			name: enhanced + "S in revision 1 means nothing", cfg: rev1, reply: rawFrame(rep, 0x10, 1, 3, 'p', 'd', '!'), private: "pd!", ird: 128,
			ord: 8,
		},
		{name: mpaFrame + "reserved flags", cfg: def, reply: good(0x1f, 8, 4), ird: 4, ord: 8},
		{name: mpaFrame + "C asked for by the responder", cfg: def, reply: good(0x50, 8, 4), ird: 4, ord: 8, crc: true},
		{name: mpaFrame + "C asked for by the initiator only: used all the same", cfg: crc, reply: good(0x10, 8, 4), ird: 4, ord: 8, crc: true},
		{name: mpaFrame + "512 bytes", cfg: rev1, reply: rawFrame(rep, 0, 1, 512, many[:512]...), private: string(many[:512]), ird: 128, ord: 8},

		{
			name: mpaFrame + "R", cfg: def, reply: rawFrame(rep, 0x30, 2, 6, append(word(4, 8), 'n', 'o')...), errno: reset, private: "no",
			reject: true,
		},
		{name: mpaFrame + "R without private data", cfg: def, reply: good(0x30, 4, 8), errno: reset, reject: true},
		{name: mpaFrame + "R in revision 1", cfg: def, reply: rawFrame(rep, 0x20, 1, 2, 'n', 'o'), errno: reset, private: "no", reject: true},
		{name: mpaFrame + "R to revision 1", cfg: rev1, reply: rawFrame(rep, 0x20, 1, 2, 'n', 'o'), errno: reset, private: "no", reject: true},
		{name: mpaFrame + "R and M: rejected is what counts", cfg: def, reply: good(0xb0, 4, 8), errno: reset, reject: true},
		{name: mpaFrame + "R with limits we cannot meet", cfg: def, reply: good(0x30, 0, 0x3ffe), errno: reset, reject: true},
		{name: enhanced + "revision 1 to revision 2", cfg: def, reply: rawFrame(rep, 0, 1, 1, 'x'), errno: reset, private: "x"},
		{name: enhanced + "revision 0 to revision 2", cfg: def, reply: rawFrame(rep, 0, 0, 1, 'x'), errno: reset, private: "x"},
		{name: enhanced + "S missing", cfg: def, reply: rawFrame(rep, 0, 2, 1, 'x'), errno: reset, private: "x"},
		{name: mpaFrame + "M", cfg: def, reply: good(0x90, 8, 4), errno: refused},
		{name: mpaFrame + "M in revision 1", cfg: rev1, reply: rawFrame(rep, 0x80, 1, 0), errno: refused},
		{name: enhanced + "revision 2 to revision 1", cfg: rev1, reply: good(0x10, 8, 4), errno: inval},
		{name: enhanced + "revision 2 to revision 1, S missing", cfg: rev1, reply: rawFrame(rep, 0, 2, 0), errno: inval},

		{name: codes + "another protocol", cfg: def, reply: []byte("HTTP/1.1 400 Bad Request"), errno: inval, term: "2004"},
		{name: codes + "key of a Request", cfg: def, reply: rawFrame(req, 0x10, 2, 4, word(8, 4)...), errno: inval, term: "2004"},
		{name: codes + "revision 3", cfg: def, reply: rawFrame(rep, 0x10, 3, 4, word(8, 4)...), errno: inval, term: "2004"},
		{name: codes + "revision 3 with R", cfg: def, reply: rawFrame(rep, 0x30, 3, 4, word(8, 4)...), errno: inval, term: "2004"},
		{name: codes + "513 bytes", cfg: def, reply: rawFrame(rep, 0x10, 2, 513, many...), errno: inval, term: "2004"},
		{name: codes + "65535 bytes", cfg: rev1, reply: rawFrame(rep, 0, 1, 65535), errno: inval, term: "2004"},
		{name: codes + "control word of 0 bytes", cfg: def, reply: rawFrame(rep, 0x10, 2, 0), errno: inval, term: "2004"},
		{name: codes + "control word of 1 byte", cfg: def, reply: rawFrame(rep, 0x10, 2, 1, 1), errno: inval, term: "2004"},
		{name: codes + "control word of 3 bytes", cfg: def, reply: rawFrame(rep, 0x10, 2, 3, 1, 2, 3), errno: inval, term: "2004"},

		{name: limits + "the peer asks for one Read more than we have offered", cfg: def, reply: good(0x10, 8, 5), ird: 5, ord: 8},
		{name: limits + "the peer asks for as many as the device serves", cfg: def, reply: good(0x10, 8, 128), ird: 128, ord: 8},
		{name: limits + "the peer asks for one more than that", cfg: def, reply: good(0x10, 8, 129), errno: inval, term: "2006"},
		{name: limits + "the peer asks for the most", cfg: def, reply: good(0x10, 8, 0x3ffe), errno: inval, term: "2006"},
		{name: limits + "the peer asks for a Read where we have offered none", cfg: core.Config{}, reply: good(0x10, 0, 1), ird: 1},
		{name: limits + "with CRC", cfg: crc, reply: good(0x50, 8, 129), errno: inval, term: "2006", crc: true},
		{name: limits + "the peer serves fewer than we ask for", cfg: def, reply: good(0x10, 3, 4), ird: 4, ord: 3},
		{name: limits + "the peer serves none", cfg: def, reply: good(0x10, 0, 0), ird: 4},
		{name: limits + "the peer serves more", cfg: def, reply: good(0x10, 0x3ffe, 1), ird: 4, ord: 8},
		{name: limits + "0x3fff: neither is agreed on here", cfg: def, reply: good(0x10, 0x3fff, 0x3fff), ird: 4, ord: 8},
		{name: limits + "0x3fff: ORD only", cfg: def, reply: good(0x10, 2, 0x3fff), ird: 4, ord: 2},
		{name: limits + "0x3fff: IRD only", cfg: def, reply: good(0x10, 0x3fff, 2), ird: 4, ord: 8},

		{name: peer2peer + "a Write chosen", cfg: p2p, reply: good(0x10, 0x8008, 0x8004), ird: 4, ord: 8, first: "Write"},
		{name: peer2peer + "a Read chosen", cfg: p2p, reply: good(0x10, 0x8008, 0x4004), ird: 4, ord: 8, first: "Read Request"},
		{name: peer2peer + "both chosen: the Write", cfg: p2p, reply: good(0x10, 0x8008, 0xc004), ird: 4, ord: 8, first: "Write"},
		{name: peer2peer + "refused", cfg: p2p, reply: good(0x10, 8, 4), ird: 4, ord: 8},
		{name: peer2peer + "refused, with leftovers", cfg: p2p, reply: good(0x10, 0x4008, 0xc004), ird: 4, ord: 8},
		{name: peer2peer + "not asked for", cfg: def, reply: good(0x10, 0xc008, 0xc004), ird: 4, ord: 8},
		{name: peer2peer + "none chosen", cfg: p2p, reply: good(0x10, 0x8008, 4), errno: inval, term: "2007"},
		{name: peer2peer + "only the empty FPDU, not offered", cfg: p2p, reply: good(0x10, 0xc008, 4), errno: inval, term: "2007"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			row.play(t, whole)
			row.play(t, func() int { return 1 })
		})
	}
}

func (row *replyRow) play(t *testing.T, step func() int) {
	t.Helper()
	row.cfg.Initiator = true
	s, peer := newSide(t, "initiator", row.cfg), newSide(t, "responder", core.Config{})
	peer.c.BeginSetup(t0)
	s.c.BeginSetup(t0)
	peer.input(s.take(1<<30), whole)
	if err := peer.c.Accept(t0, nil, 4, 4); err != nil {
		t.Fatal(err)
	}
	peer.take(1 << 30) // what its application sent is not what arrives
	s.out = nil
	s.postRecv(1, 1)
	peer.postRecv(11, 1)
	s.input(row.reply, step)
	if string(s.private) != row.private || s.c.CRC() != row.crc {
		t.Errorf("private data %q, CRC %t: want %q, %t", s.private, s.c.CRC(), row.private, row.crc)
	}
	if row.errno == 0 {
		if s.est != 1 || s.closed != 0 || s.rejected != nil || s.ird != row.ird || s.ord != row.ord {
			t.Errorf("established %d, IRD %d, ORD %d, %v: want %d and %d", s.est, s.ird, s.ord, s.rejected, row.ird, row.ord)
		}
		first := ""
		if ops := opcodes(t, s.take(1<<30)); len(ops) > 0 {
			first = ops[0].String()
		}
		if first != row.first {
			t.Errorf("says %q at once, want %q", first, row.first)
		}
		return
	}
	row.refused(t, s)
	if row.term == "" {
		s.quiet("nothing but a FIN")
		s.wantClose("nothing but a FIN", false, true)
		peer.c.InputEnd(t0, nil)
		if !row.cfg.PeerToPeer && peer.err != nil {
			t.Errorf("the responder was established; the FIN is an orderly end, not %v", peer.err)
		}
	} else {
		out := s.take(1 << 30)
		wantTerminate(t, s, "behind the Request", out, row.term+"0000")
		if row.crc {
			return // the responder of this test did not agree to it
		}
		peer.input(out, step)
		wantTerminated(t, peer, row.term)
	}
	peer.wantDone("responder", "r11:work request flushed/0")
}

// refused checks the report to the initiator's owner.
func (row *replyRow) refused(t *testing.T, s *side) {
	t.Helper()
	var e *core.Error
	if !errors.As(s.rejected, &e) {
		t.Fatalf("rejected %v, established %d", s.rejected, s.est)
	}
	delivered := row.term != ""
	if e.Op != "reply" || e.Errno != row.errno || e.Rejected != row.reject || e.Received || e.Sent != delivered || e.Protocol != delivered {
		t.Errorf("%+v: want errno %v, rejected %t, Terminate %q", *e, row.errno, row.reject, row.term)
	}
	if e.Sent && termOf(e) != row.term {
		t.Errorf("the owner got %s, the peer %s", termOf(e), row.term)
	}
	wantErrno(t, "Closed", s.err, row.errno)
	if s.est != 0 || s.closed != 1 || errors.Is(e, core.ErrNoReply) {
		t.Errorf("established %d, closed %d, %v", s.est, s.closed, e)
	}
	s.wantDone("initiator", "r1:work request flushed/0")
	wantOver(t, s)
}
