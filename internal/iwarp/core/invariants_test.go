package core_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// law compares one side's output, byte by byte, with the RFCs and with the rules that keep siw's
// kernel alive.
type law struct {
	t       tb
	s       *side
	asked   *law   // a responder: its initiator's
	private []byte // passed by the owner for the frame

	buf       []byte
	frame     []byte // complete
	crc       bool   // in the FPDUs
	fpdus     int
	sendMSN   uint32
	readMSN   uint32
	send, tag *wire.Header // in progress: the segment before
	at        uint64       // where that one's message goes on: MO or TO
	over      bool         // a Terminate was sent
	frameAt   time.Time
}

func (l *law) fail(format string, args ...any) {
	l.t.Helper()
	l.t.Fatalf(l.s.name+": "+format, args...)
}

// sent is called with each piece of output.
func (l *law) sent(b []byte) {
	l.t.Helper()
	l.buf = append(l.buf, b...)
	if l.frame == nil {
		if len(l.buf) < wire.FrameLen {
			return
		}
		n := wire.FrameLen + int(binary.BigEndian.Uint16(l.buf[18:]))
		if len(l.buf) < n {
			return
		}
		l.frame, l.buf, l.frameAt = l.buf[:n:n], l.buf[n:], l.s.now
		// behind a Request there can be a Terminate, if bytes came before it was out
		if len(l.buf) > 0 && l.asked != nil {
			l.fail("%d bytes are glued to the Reply %x", len(l.buf), l.frame)
		}
		l.mpa()
	}
	for {
		f, n, err := wire.ConsumeFPDU(l.buf)
		if err != nil {
			return
		}
		l.fpdu(&f)
		l.buf = l.buf[n:]
		l.fpdus++
	}
}

const (
	flagM, flagC, flagR, flagS = 0x80, 0x40, 0x20, 0x10
	bitA, bitB, bitC, bitD     = 0x80000000, 0x40000000, 0x8000, 0x4000
)

// mpa judges the MPA frame. siw's kernel panics at a Reply with S and less than 4 bytes, and at
// one of more than 256.
func (l *law) mpa() {
	l.t.Helper()
	b := l.frame
	flags, rev, length := b[16], b[17], len(b)-wire.FrameLen
	reply := l.asked != nil
	key := "MPA ID Req Frame"
	if reply {
		key = "MPA ID Rep Frame"
	}
	var w uint32
	private := b[wire.FrameLen:]
	if s := flags&flagS != 0; s && length < 4 || s && rev != 2 {
		l.fail("S in a frame of revision %d with %d bytes", rev, length)
	} else if s {
		w = binary.BigEndian.Uint32(b[wire.FrameLen:])
		private = private[4:]
	}
	switch {
	case string(b[:16]) != key:
		l.fail("key %q", b[:16])
	case length > 252 || len(private) > core.MaxPrivateData || !bytes.Equal(private, l.private):
		l.fail("%d bytes, private data %x, want %x", length, private, l.private)
	case flags&0x0f != 0 || flags&flagM != 0:
		l.fail("flags %#x: reserved ones, or markers", flags)
	case w&bitB != 0:
		l.fail("control word %#x offers or chooses the empty FPDU", w)
	case !reply && (flags&flagR != 0 || rev != 1 && rev != 2 || (rev == 2) != (flags&flagS != 0)):
		l.fail("Request with flags %#x, revision %d", flags, rev)
	case !reply && w&(bitA|bitC|bitD) != 0 && w&(bitA|bitC|bitD) != bitA|bitC|bitD:
		l.fail("Request with the control word %#x: A goes with C and D", w)
	case reply:
		l.reply(flags, rev, w)
	}
}

// reply checks a Reply against its Request.
func (l *law) reply(flags, rev byte, w uint32) {
	l.t.Helper()
	q := l.asked.frame
	var asked uint32
	if q[16]&flagS != 0 && q[17] == 2 && len(q) >= wire.FrameLen+4 {
		asked = binary.BigEndian.Uint32(q[wire.FrameLen:])
	}
	choice := w & (bitC | bitD)
	switch {
	case rev != q[17] || flags&flagS != 0 != (q[16]&flagS != 0 && rev == 2):
		l.fail("Reply with flags %#x and revision %d to a Request with %#x and %d", flags, rev, q[16], q[17])
	case flags&flagR != 0 && w != asked&0x3fff3fff && len(q) <= wire.FrameLen+512:
		l.fail("rejecting Reply with the control word %#x to %#x", w, asked)
	case flags&flagR != 0:
	case flags&flagC == 0 && q[16]&flagC != 0:
		l.fail("C was asked for and is not in the Reply")
	case w&bitA != asked&bitA:
		l.fail("Reply with the control word %#x to %#x: A", w, asked)
	case w&bitA == 0 && choice != 0 || w&bitA != 0 && choice != bitC && choice != bitD:
		l.fail("Reply with the control word %#x: one of C and D with A, none without", w)
	case w>>16&0x3fff > core.MaxIRD || w&0x3fff > asked>>16&0x3fff && asked>>16&0x3fff != wire.NotNegotiated:
		l.fail("Reply with the control word %#x to %#x: more Reads than the initiator serves", w, asked)
	}
}

// fpdu checks an FPDU against those before it.
func (l *law) fpdu(f *wire.FPDU) {
	l.t.Helper()
	want := uint32(0)
	if l.crc {
		want = f.Checksum()
	}
	if f.Pad != [3]byte{} || f.CRC != want {
		l.fail("pad %x, CRC %#x, want %#x", f.Pad, f.CRC, want)
	}
	h, n, err := wire.ConsumeHeader(f.ULPDU)
	if err != nil {
		l.fail("ULPDU %x: %v", f.ULPDU[:min(len(f.ULPDU), 30)], err)
	}
	if again := wire.AppendHeader(nil, &h); !bytes.Equal(again, f.ULPDU[:n]) {
		l.fail("header %x has reserved bits", f.ULPDU[:n])
	}
	if l.over {
		l.fail("%v behind a Terminate", h.Opcode)
	}
	size := uint64(len(f.ULPDU) - n)
	other := l.send != nil && h.Tagged || l.tag != nil && !h.Tagged
	switch op := h.Opcode; {
	case op == wire.OpTerminate:
		l.over = true
		if !h.Last || h.QN != 2 || h.MSN != 1 || h.MO != 0 || h.STag != 0 {
			l.fail("Terminate with %+v", h)
		}
		if t, n, err := wire.ConsumeTerminate(f.ULPDU[n:]); err != nil || n != int(size) || t.Reversed {
			l.fail("Terminate %x: %v", f.ULPDU, err)
		}
	case other:
		l.fail("%v inside another message", op)
	case op == wire.OpReadRequest:
		l.readMSN++
		if h.QN != 1 || h.MSN != l.readMSN || h.MO != 0 || h.STag != 0 || !h.Last || size != wire.ReadRequestLen {
			l.fail("Read Request %+v of %d bytes: want MSN %d", h, size, l.readMSN)
		}
	case op.Send():
		l.untagged(&h, size)
	case op == wire.OpWrite || op == wire.OpReadResponse:
		l.tagged(&h, size)
	default:
		l.fail("%v", op)
	}
}

func (l *law) untagged(h *wire.Header, size uint64) {
	l.t.Helper()
	if l.send == nil {
		l.sendMSN, l.at = l.sendMSN+1, 0
	} else if l.send.Opcode != h.Opcode || l.send.STag != h.STag {
		l.fail("%+v goes on as %+v", *l.send, *h)
	}
	invalidates := h.Opcode == wire.OpSendInvalidate || h.Opcode == wire.OpSendSEInvalidate
	if h.QN != 0 || h.MSN != l.sendMSN || uint64(h.MO) != l.at || h.STag != 0 && !invalidates {
		l.fail("%+v: want MSN %d, MO %d", *h, l.sendMSN, l.at)
	}
	l.send, l.at = h, l.at+size
	if h.Last {
		l.send = nil
	}
}

func (l *law) tagged(h *wire.Header, size uint64) {
	l.t.Helper()
	if l.tag != nil && (l.tag.Opcode != h.Opcode || l.tag.STag != h.STag || l.at != h.TO) {
		l.fail("%+v goes on as %+v, want TO %#x", *l.tag, *h, l.at)
	}
	if !h.Last && size == 0 {
		l.fail("an empty segment that is not the last: %+v", *h)
	}
	l.tag, l.at = h, h.TO+size
	if h.Last {
		l.tag = nil
	}
}

// watched is a pair whose output is judged as it is written.
type watched struct {
	*remote
	la, lb law
	heard  bool // the responder got bytes behind the Request
}

// step writes at most limit bytes of one side's output and carries them over.
func (w *watched) step(s *side, limit int) {
	l, o := &w.la, w.b
	if s == w.b {
		l, o = &w.lb, w.a
	}
	// one Gather is one segment at worst: a Reply and an FPDU in it kill siw's set-up
	s.write(limit)
	out := s.fresh()
	if len(out) > 0 && l.frame != nil && l.fpdus == 0 && len(l.buf) == 0 {
		if s == w.b && !w.heard && s.now.Before(l.frameAt.Add(20*time.Millisecond)) {
			s.t.Fatalf("the responder speaks %v behind its Reply, unasked", s.now.Sub(l.frameAt))
		}
		if s == w.a && w.a.est == 0 && w.a.rejected == nil {
			s.t.Fatalf("the initiator speaks before the Reply")
		}
	}
	l.crc = s.c.CRC()
	l.sent(out)
	if s == w.a && l.frame != nil && len(out) > 0 && (l.fpdus > 0 || len(l.buf) > 0) {
		w.heard = true
	}
	o.input(out, func() int { return 1 + limit/2 })
	fin, gone := s.c.WantClose()
	if (fin || gone) && !s.finTold && !s.c.Pending() {
		s.finTold = true
		o.c.InputEnd(o.now, nil)
	}
}

// TestEverythingWeSend: whatever two owners do, and in whatever order, all bytes obey the law.
// Nothing that would crash siw's kernel is ever sent.
func TestEverythingWeSend(t *testing.T) {
	var runs, rejects, terminates, answers int
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		w := drawPair(rt)
		if rapid.IntRange(0, 3).Draw(rt, "set-up in peace") > 0 {
			w.settle()
		}
		things := rapid.SliceOfN(rapid.IntRange(0, 99), 10, 60).Draw(rt, "things")
		for i, thing := range things {
			s := w.a
			if thing%2 == 1 {
				s = w.b
			}
			w.do(rt, s, uint64(i))
			if thing < 80 {
				w.step(s, rapid.SampledFrom([]int{1 << 20, 1448, 30, 1}).Draw(rt, "write"))
			}
		}
		w.end(rt, w.a)
		w.settle()
		for _, l := range []*law{&w.la, &w.lb} {
			if _, cut := l.s.c.WantClose(); len(l.buf) > 0 && !cut {
				l.fail("output ends in the middle of an FPDU: %x", l.buf)
			}
		}
		if w.la.over || w.lb.over {
			terminates++
		}
		if w.lb.frame != nil && w.lb.frame[16]&flagR != 0 {
			rejects++
		}
		if w.la.fpdus > 3 && w.lb.fpdus > 3 {
			answers++
		}
	})
	if runs >= 100 && (rejects == 0 || terminates == 0 || answers == 0) {
		t.Errorf("%d rejects, %d Terminates, %d conversations: the property saw too little", rejects, terminates, answers)
	}
}

// drawPair draws an initiator and a responder that has answered, or will, somehow.
func drawPair(rt *rapid.T) *watched {
	private := func(name string) []byte { return rapid.SliceOfN(rapid.Byte(), 0, core.MaxPrivateData).Draw(rt, name) }
	number := rapid.OneOf(rapid.Uint16Range(0, 5), rapid.Uint16Range(0, core.MaxIRD))
	segment := rapid.SampledFrom([]int{0, 17, 128, 129, 1424})
	regs := [2]*core.Regions{{}, {}}
	ca := core.Config{
		Initiator: true, Revision: uint8(rapid.IntRange(0, 2).Draw(rt, "revision")), PrivateData: private("private data"),
		IRD: number.Draw(rt, "IRD"), ORD: number.Draw(rt, "ORD"), PeerToPeer: rapid.Bool().Draw(rt, "peer-to-peer"),
		CRC: rapid.Bool().Draw(rt, "CRC"), MaxSegment: segment.Draw(rt, "segment"), Queues: core.Queues{Regions: regs[0]},
	}
	cb := core.Config{
		CRC: rapid.Bool().Draw(rt, "responder's CRC"), MaxSegment: segment.Draw(rt, "responder's segment"), Queues: core.Queues{Regions: regs[1]},
	}
	w := &watched{remote: &remote{a: newSide(rt, "initiator", ca), b: newSide(rt, "responder", cb), farRegs: regs[1]}}
	w.near = &verbs.MR{Bytes: make([]byte, 8000), Addr: 1 << 40, LKey: 0x1111, RKey: 0x1111, Access: everyAccess}
	w.far = &verbs.MR{Bytes: make([]byte, 8000), Addr: 1 << 50, LKey: 0x2222, RKey: 0x2222, Access: everyAccess}
	regs[0].Add(w.near)
	regs[1].Add(w.far)
	w.la = law{t: rt, s: w.a, private: ca.PrivateData}
	w.lb = law{t: rt, s: w.b, asked: &w.la}
	if kind := rapid.IntRange(0, 9).Draw(rt, "answer"); kind > 0 { // else the end rejects
		w.lb.private = private("reply")
		ird, ord := number.Draw(rt, "accept IRD"), number.Draw(rt, "accept ORD")
		w.b.onRequest = func(core.Request) {
			if kind == 1 {
				if err := w.b.c.Reject(w.b.now, w.lb.private); err != nil {
					rt.Fatal(err)
				}
				return
			}
			if err := w.b.c.Accept(w.b.now, w.lb.private, ird, ord); err != nil {
				rt.Fatal(err)
			}
			w.b.postSend(1000, "as early as can be", 0)
		}
	}
	for _, s := range []*side{w.a, w.b} {
		for id := range uint64(20) {
			s.postRecv(id, 5000)
		}
		s.c.BeginSetup(s.now)
	}
	return w
}

// settle runs until nothing more is sent, with time for the hold-off and the kicks.
func (w *watched) settle() {
	for range 3 {
		for turn := 0; w.a.c.Pending() || w.b.c.Pending(); turn++ {
			if turn > 1<<17 {
				w.a.t.Fatalf("output for ever: initiator %t, responder %t", w.a.c.Pending(), w.b.c.Pending())
			}
			w.step(w.a, 1<<20)
			w.step(w.b, 1<<20)
		}
		for _, s := range []*side{w.a, w.b} {
			s.now = s.now.Add(10 * time.Millisecond)
			s.c.Timeout(s.now)
		}
	}
}

// do posts a work request, if that is possible now, or lets time go by.
func (w *watched) do(rt *rapid.T, s *side, id uint64) {
	mine, theirs := w.near, w.far
	if s == w.b {
		mine, theirs = w.far, w.near
	}
	// from the half of our memory that no peer writes; a Read reads the half that Writes go to
	n := rapid.IntRange(0, 4000).Draw(rt, "bytes")
	wr := verbs.SendWR{
		ID: id, Op: verbs.Opcode(rapid.SampledFrom([]int{0, 0, 2, 2, 3, 3, 9}).Draw(rt, "operation")),
		Flags: verbs.SendFlags(rapid.IntRange(0, 7).Draw(rt, "flags")), RKey: theirs.RKey, RemoteAddr: theirs.Addr + 4000,
		SGL: []verbs.SGE{{MR: mine, Length: uint32(n)}},
	}
	if wr.Op == verbs.Read {
		wr.SGL[0].Offset = 4000
	}
	if wr.Op > verbs.Read {
		s.now = s.now.Add(time.Duration(n) * time.Microsecond)
		s.c.Timeout(s.now)
		return
	}
	_ = s.c.PostSend(&wr)
}

// end ends the connection in one of several ways.
func (w *watched) end(rt *rapid.T, s *side) {
	if rapid.Bool().Draw(rt, "at the responder") {
		s = w.b
	}
	switch rapid.IntRange(0, 5).Draw(rt, "end") {
	case 0:
		s.c.Disconnect(s.now)
	case 1:
		s.c.Abort(s.now)
	case 2:
		w.heard = true
		s.c.Input(s.now, rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(rt, "garbage"))
	case 3:
		_ = s.c.PostSend(&verbs.SendWR{Op: verbs.Write, RKey: 0x9999, Inline: []byte("nowhere")})
	case 4:
		_ = s.c.PostSend(&verbs.SendWR{Op: verbs.SendWithInvalidate, RKey: rapid.SampledFrom([]uint32{0x1111, 0x2222}).Draw(rt, "key")})
	case 5:
		w.far.PD = &domain{} // freed, with Reads of it under way
	}
}

// TestEveryReply: whatever a Request contains, and whatever the owner does with it, the answer is
// one well-formed Reply or nothing.
func TestEveryReply(t *testing.T) {
	var replies int
	rapid.Check(t, func(rt *rapid.T) {
		length := rapid.OneOf(rapid.IntRange(0, 8), rapid.IntRange(0, 600)).Draw(rt, "length")
		rest := rapid.SliceOfN(rapid.Byte(), length, length).Draw(rt, "rest")
		in := rawFrame(req, rapid.Byte().Draw(rt, "flags"), rapid.SampledFrom([]byte{0, 1, 2, 2, 2, 3}).Draw(rt, "revision"), length, rest...)
		own := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "private data")
		ird, ord := rapid.Uint16Max(0x4001).Draw(rt, "IRD"), rapid.Uint16Max(0x4001).Draw(rt, "ORD")
		reject := rapid.Bool().Draw(rt, "reject")
		s := newSide(rt, "responder", core.Config{CRC: rapid.Bool().Draw(rt, "CRC")})
		l := law{t: rt, s: s, asked: &law{frame: in}}
		s.c.BeginSetup(t0)
		s.input(in, whole)
		if len(s.requests) == 1 {
			var err error
			bad := len(own) > core.MaxPrivateData
			if reject {
				err = s.c.Reject(t0, own)
			} else {
				err = s.c.Accept(t0, own, ird, ord)
				bad = bad || max(ird, ord) > core.MaxIRD
			}
			if errors.Is(err, unix.EINVAL) != bad || err != nil && !bad {
				rt.Fatalf("%d bytes, IRD %d, ORD %d, reject %t: %v", len(own), ird, ord, reject, err)
			}
			if bad {
				s.quiet("a refused answer")
				return
			}
			l.private = own
			_ = s.c.PostSend(&verbs.SendWR{Inline: []byte("held back")})
		}
		out := s.take(1 << 30)
		l.sent(out)
		if accepted := len(s.requests) == 1 && !reject; len(out) > 0 && accepted != (out[16]&flagR == 0) {
			rt.Fatalf("accepted %t: Reply %x", accepted, out)
		}
		if len(l.buf) > 0 || l.fpdus > 0 {
			rt.Fatalf("%x behind the Reply, or half of one", l.buf)
		}
		if len(out) > 0 {
			replies++
		}
	})
	if replies == 0 {
		t.Error("no Reply was ever sent")
	}
}
